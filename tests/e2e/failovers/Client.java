import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Updates.inc;

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.client.ChangeStreamIterable;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoChangeStreamCursor;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.bson.BsonDocument;
import org.bson.Document;

/** The Java driver through failovers, as test_failovers.py says: URI NAME, until standard input ends. */
public class Client {
    private static final long PATIENCE_S = 60;

    private static void say(String what, Object error) {
        System.err.println(what + ": " + error);
    }

    /** Change streams resume by themselves once; after that with their token. */
    private static void watch(MongoCollection<Document> things, String name, List<String> seen, CountDownLatch opened) {
        BsonDocument token = null;
        while (true) {
            ChangeStreamIterable<Document> changes = things.watch(List.of(Aggregates.match(eq("fullDocument.by", name))));
            if (token != null) {
                changes.resumeAfter(token);
            }
            try (MongoChangeStreamCursor<ChangeStreamDocument<Document>> cursor = changes.cursor()) {
                opened.countDown();
                while (true) {
                    ChangeStreamDocument<Document> change = cursor.tryNext();
                    if (cursor.getResumeToken() != null) {
                        token = cursor.getResumeToken();
                    }
                    if (change != null) {
                        seen.add(change.getFullDocument().getString("_id"));
                    }
                }
            } catch (MongoException error) {
                say(name + " watch", error);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        String name = args[1];
        MongoClient client = MongoClients.create(MongoClientSettings.builder()
                .applyConnectionString(new ConnectionString(args[0]))
                .applyToClusterSettings(cluster -> cluster.serverSelectionTimeout(PATIENCE_S, TimeUnit.SECONDS))
                .build());
        MongoDatabase db = client.getDatabase("failovers");
        MongoCollection<Document> things = db.getCollection("things");
        MongoCollection<Document> counters = db.getCollection("counters");
        MongoCollection<Document> accounts = db.getCollection("accounts");
        AtomicBoolean stop = new AtomicBoolean();
        Thread reader = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (java.io.IOException error) {
                say(name, error);
            }
            stop.set(true);
        });
        reader.setDaemon(true);
        reader.start();
        counters.insertOne(new Document("_id", name).append("n", 0));
        accounts.insertMany(List.of(new Document("_id", name + " a").append("n", 0), new Document("_id", name + " b").append("n", 0)));
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch opened = new CountDownLatch(1);
        Thread watcher = new Thread(() -> watch(things, name, seen, opened));
        watcher.setDaemon(true);
        watcher.start();
        opened.await();
        System.out.println("running");
        List<String> acknowledged = new ArrayList<>();
        int unknown = 0;
        int increments = 0;
        int unknownIncrements = 0;
        int moved = 0;
        for (int at = 1; !stop.get(); at++) {
            String id = name + " " + at;
            try {
                things.insertOne(new Document("_id", id).append("by", name));
                acknowledged.add(id);
            } catch (MongoException error) {
                unknown++;
                say(name + " insert", error);
            }
            try {
                counters.updateOne(eq(name), inc("n", 1));
                increments++;
            } catch (MongoException error) {
                unknownIncrements++;
                say(name + " update", error);
            }
            if (at % 5 == 0) {
                try (ClientSession session = client.startSession()) {
                    session.withTransaction(() -> {
                        accounts.updateOne(session, eq(name + " a"), inc("n", -1));
                        return accounts.updateOne(session, eq(name + " b"), inc("n", 1));
                    });
                }
                moved++;
            }
        }
        long begun = System.nanoTime();
        while (!acknowledged.isEmpty()
                && !seen.contains(acknowledged.get(acknowledged.size() - 1))
                && System.nanoTime() - begun < TimeUnit.SECONDS.toNanos(PATIENCE_S)) {
            Thread.sleep(50);
        }
        Set<String> there = new HashSet<>();
        for (Document found : things.find(eq("by", name))) {
            there.add(found.getString("_id"));
        }
        Set<String> known = new HashSet<>(new ArrayList<>(seen));
        List<String> missing = new ArrayList<>(acknowledged);
        missing.removeAll(there);
        List<String> unseen = new ArrayList<>(acknowledged);
        unseen.removeAll(known);
        System.out.println(new Document("acknowledged", acknowledged.size())
                .append("unknown", unknown)
                .append("missing", missing)
                .append("unseen", unseen)
                .append("seenTwice", seen.size() - known.size())
                .append("increments", increments)
                .append("unknownIncrements", unknownIncrements)
                .append("counter", counters.find(eq(name)).first().getInteger("n"))
                .append("moved", moved)
                .append("accounts", List.of(accounts.find(eq(name + " a")).first().getInteger("n"),
                        accounts.find(eq(name + " b")).first().getInteger("n")))
                .toJson());
        System.exit(0);
    }
}
