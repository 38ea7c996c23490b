// The Go driver through failovers, as test_failovers.py says: URI NAME, until standard input ends.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
)

const patience = time.Minute

var background = context.Background()

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type changes struct {
	sync.Mutex
	seen []string
}

func (c *changes) count() (map[string]bool, int) {
	c.Lock()
	defer c.Unlock()
	known := map[string]bool{}
	for _, one := range c.seen {
		known[one] = true
	}
	return known, len(c.seen) - len(known)
}

// Change streams resume by themselves once; after that with their token.
func (c *changes) watch(things *mongo.Collection, name string, opened func()) {
	var token bson.Raw
	pipeline := mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "fullDocument.by", Value: name}}}}}
	for {
		how := options.ChangeStream()
		if token != nil {
			how.SetResumeAfter(token)
		}
		stream, err := things.Watch(background, pipeline, how)
		if err == nil {
			opened()
			for stream.Next(background) {
				var change struct {
					FullDocument struct {
						ID string `bson:"_id"`
					} `bson:"fullDocument"`
				}
				check(stream.Decode(&change))
				token = stream.ResumeToken()
				c.Lock()
				c.seen = append(c.seen, change.FullDocument.ID)
				c.Unlock()
			}
			err = stream.Err()
			_ = stream.Close(background)
		}
		fmt.Fprintln(os.Stderr, name, "watch:", err)
	}
}

func main() {
	uri, name := os.Args[1], os.Args[2]
	client, err := mongo.Connect(background, options.Client().ApplyURI(uri).SetServerSelectionTimeout(patience))
	check(err)
	db := client.Database("failovers")
	things, counters, accounts := db.Collection("things"), db.Collection("counters"), db.Collection("accounts")
	var stop atomic.Bool
	go func() {
		_, _ = io.ReadAll(os.Stdin)
		stop.Store(true)
	}()
	_, err = counters.InsertOne(background, bson.M{"_id": name, "n": 0})
	check(err)
	for _, side := range []string{" a", " b"} {
		_, err = accounts.InsertOne(background, bson.M{"_id": name + side, "n": 0})
		check(err)
	}
	var seen changes
	var once sync.Once
	opened := make(chan struct{})
	go seen.watch(things, name, func() { once.Do(func() { close(opened) }) })
	<-opened
	fmt.Println("running")
	acknowledged := []string{}
	unknown, increments, unknownIncrements, moved := 0, 0, 0, 0
	for at := 1; !stop.Load(); at++ {
		id := fmt.Sprint(name, " ", at)
		if _, err := things.InsertOne(background, bson.M{"_id": id, "by": name}); err != nil {
			unknown++
			fmt.Fprintln(os.Stderr, name, "insert:", err)
		} else {
			acknowledged = append(acknowledged, id)
		}
		if _, err := counters.UpdateByID(background, name, bson.M{"$inc": bson.M{"n": 1}}); err != nil {
			unknownIncrements++
			fmt.Fprintln(os.Stderr, name, "update:", err)
		} else {
			increments++
		}
		if at%5 == 0 {
			session, err := client.StartSession()
			check(err)
			_, err = session.WithTransaction(background, func(ctx mongo.SessionContext) (interface{}, error) {
				if _, err := accounts.UpdateByID(ctx, name+" a", bson.M{"$inc": bson.M{"n": -1}}); err != nil {
					return nil, err
				}
				return accounts.UpdateByID(ctx, name+" b", bson.M{"$inc": bson.M{"n": 1}})
			})
			check(err)
			session.EndSession(background)
			moved++
		}
	}
	for begun := time.Now(); len(acknowledged) > 0 && time.Since(begun) < patience; time.Sleep(50 * time.Millisecond) {
		if known, _ := seen.count(); known[acknowledged[len(acknowledged)-1]] {
			break
		}
	}
	found, err := things.Find(background, bson.M{"by": name})
	check(err)
	there := map[string]bool{}
	for found.Next(background) {
		there[found.Current.Lookup("_id").StringValue()] = true
	}
	known, twice := seen.count()
	missing, unseen := []string{}, []string{}
	for _, one := range acknowledged {
		if !there[one] {
			missing = append(missing, one)
		}
		if !known[one] {
			unseen = append(unseen, one)
		}
	}
	number := func(from *mongo.Collection, id string) int {
		var held struct{ N int }
		check(from.FindOne(background, bson.M{"_id": id}).Decode(&held))
		return held.N
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"acknowledged": len(acknowledged), "unknown": unknown, "missing": missing, "unseen": unseen, "seenTwice": twice,
		"increments": increments, "unknownIncrements": unknownIncrements, "counter": number(counters, name), "moved": moved,
		"accounts": []int{number(accounts, name+" a"), number(accounts, name+" b")},
	}))
}
