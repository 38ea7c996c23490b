// PostgreSQL's JDBC driver, unmodified: `java -cp postgresql.jar Jdbc.java URL`. Prints the names of the steps that went well.

import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.Array;
import java.sql.BatchUpdateException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Properties;
import org.postgresql.PGConnection;
import org.postgresql.util.PSQLException;

public class Jdbc {
    interface Step {
        void run() throws Exception;
    }

    static Connection connection;

    static void step(String name, Step step) throws Exception {
        try {
            step.run();
        } catch (Throwable failed) {
            throw new Exception("step " + name, failed);
        }
        System.out.println(name);
    }

    static void same(Object expected, Object found) {
        if (!Objects.equals(expected, found)) {
            throw new AssertionError("expected " + expected + " and found " + found);
        }
    }

    static List<String> rows(ResultSet result, String... columns) throws SQLException {
        List<String> out = new ArrayList<>();
        while (result.next()) {
            List<String> row = new ArrayList<>();
            for (String column : columns) {
                row.add(result.getString(column));
            }
            out.add(String.join("|", row));
        }
        return out;
    }

    static String one(String query) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(query)) {
            result.next();
            return result.getString(1);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("user", "tester");
        // From the second time on statements are prepared and rows are binary.
        properties.put("prepareThreshold", "2");
        connection = DriverManager.getConnection(arguments[0], properties);
        step("types", Jdbc::types);
        step("keys", Jdbc::keys);
        step("batches", Jdbc::batches);
        step("cursors", Jdbc::cursors);
        step("updates", Jdbc::updates);
        step("copy", Jdbc::copy);
        step("transactions", Jdbc::transactions);
        step("calls", Jdbc::calls);
        step("errors", Jdbc::errors);
        step("metadata", Jdbc::metadata);
        step("rewriting", () -> rewriting(arguments[0]));
        connection.close();
    }

    static void types() throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE jdbc (id serial PRIMARY KEY, t text, n numeric(10,3), z timestamptz, d date, j jsonb, ts text[],"
                + " ns int[], b bytea, o boolean, f double precision, l bigint, s smallint)");
        }
        PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc (t, n, z, d, j, ts, ns, b, o, f, l, s) VALUES (?, ?, ?, ?, ?::jsonb, ?, ?, ?, ?, ?, ?, ?)");
        for (int i = 0; i < 4; i++) {
            insert.setString(1, "row " + i);
            insert.setBigDecimal(2, new BigDecimal("1.250"));
            insert.setObject(3, OffsetDateTime.parse("2020-01-02T03:04:05.678Z"));
            insert.setObject(4, LocalDate.parse("2020-01-02"));
            insert.setString(5, "{\"a\": 1}");
            insert.setArray(6, connection.createArrayOf("text", new String[] {"a", null, "b\""}));
            insert.setArray(7, connection.createArrayOf("int4", new Integer[] {1, -2}));
            insert.setBytes(8, new byte[] {0, 1, -1});
            insert.setBoolean(9, true);
            insert.setDouble(10, 1.5);
            insert.setLong(11, 1L << 60);
            insert.setShort(12, (short) -7);
            same(1, insert.executeUpdate());
        }
        PreparedStatement select = connection.prepareStatement("SELECT * FROM jdbc WHERE id = ?");
        for (int i = 1; i <= 4; i++) {
            select.setInt(1, i);
            ResultSet row = select.executeQuery();
            row.next();
            same("row " + (i - 1), row.getString("t"));
            same(new BigDecimal("1.250"), row.getBigDecimal("n"));
            same(OffsetDateTime.parse("2020-01-02T03:04:05.678Z"), row.getObject("z", OffsetDateTime.class));
            same(LocalDate.parse("2020-01-02"), row.getObject("d", LocalDate.class));
            same("{\"a\": 1}", row.getString("j"));
            same("[a, null, b\"]", Arrays.toString((Object[]) row.getArray("ts").getArray()));
            same("[1, -2]", Arrays.toString((Object[]) row.getArray("ns").getArray()));
            same("[0, 1, -1]", Arrays.toString(row.getBytes("b")));
            same(true, row.getBoolean("o"));
            same(1.5, row.getDouble("f"));
            same(1L << 60, row.getLong("l"));
            same((short) -7, row.getShort("s"));
        }
    }

    static void keys() throws Exception {
        PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc (t) VALUES (?)", Statement.RETURN_GENERATED_KEYS);
        insert.setString(1, "keyed");
        insert.executeUpdate();
        ResultSet keys = insert.getGeneratedKeys();
        keys.next();
        same(5, keys.getInt("id"));
    }

    static void batches() throws Exception {
        PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc (t, s) VALUES (?, ?)", new String[] {"id"});
        for (int i = 0; i < 100; i++) {
            insert.setString(1, "batch");
            insert.setInt(2, i);
            insert.addBatch();
        }
        same(100, Arrays.stream(insert.executeBatch()).sum());
        ResultSet keys = insert.getGeneratedKeys();
        keys.next();
        same(6, keys.getInt(1));
        try (Statement statement = connection.createStatement()) {
            statement.addBatch("INSERT INTO jdbc (id) VALUES (900)");
            statement.addBatch("INSERT INTO jdbc (id) VALUES (900)");
            statement.executeBatch();
            throw new AssertionError("a key came twice");
        } catch (BatchUpdateException twice) {
            same("23505", twice.getSQLState());
        }
        same("0", one("SELECT count(*) FROM jdbc WHERE id = 900"));
    }

    static void cursors() throws Exception {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(7);
            ResultSet result = statement.executeQuery("SELECT * FROM jdbc");
            int rows = 0;
            while (result.next()) {
                rows++;
            }
            same(105, rows);
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    /** Rows of a result are updated by the key of their table, which the driver finds by the origins of columns. */
    static void updates() throws Exception {
        try (Statement statement = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
            ResultSet result = statement.executeQuery("SELECT id, t FROM jdbc WHERE id < 3 ORDER BY id");
            result.last();
            result.updateString("t", "updated");
            result.updateRow();
            result.first();
            result.deleteRow();
            result.moveToInsertRow();
            result.updateInt("id", 1000);
            result.updateString("t", "inserted");
            result.insertRow();
        }
        same("2:updated,1000:inserted", one("SELECT string_agg(id || ':' || t, ',' ORDER BY id) FROM jdbc WHERE id IN (1, 2, 1000)"));
    }

    static void copy() throws Exception {
        var copies = connection.unwrap(PGConnection.class).getCopyAPI();
        same(2L, copies.copyIn("COPY jdbc (id, t) FROM STDIN (FORMAT csv)", new StringReader("2001,x\n2002,\"y,z\"\n")));
        StringWriter out = new StringWriter();
        copies.copyOut("COPY (SELECT id, t FROM jdbc WHERE id > 2000 ORDER BY id) TO STDOUT", out);
        same("2001\tx\n2002\ty,z\n", out.toString());
    }

    static void transactions() throws Exception {
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        same(Connection.TRANSACTION_SERIALIZABLE, connection.getTransactionIsolation());
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            Savepoint before = connection.setSavepoint("before");
            statement.executeUpdate("DELETE FROM jdbc");
            connection.rollback(before);
            statement.executeUpdate("UPDATE jdbc SET s = 1 WHERE id = 3");
        }
        connection.commit();
        connection.setAutoCommit(true);
        connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        connection.setReadOnly(true);
        connection.setAutoCommit(false);
        try {
            one("INSERT INTO jdbc DEFAULT VALUES RETURNING id");
            throw new AssertionError("it was written");
        } catch (SQLException refused) {
            same("25006", refused.getSQLState());
        }
        connection.rollback();
        connection.setAutoCommit(true);
        connection.setReadOnly(false);
        same("1", one("SELECT s FROM jdbc WHERE id = 3"));
    }

    static void calls() throws Exception {
        CallableStatement call = connection.prepareCall("{? = call upper(?)}");
        call.registerOutParameter(1, Types.VARCHAR);
        call.setString(2, "abc");
        call.execute();
        same("ABC", call.getString(1));
        PreparedStatement among = connection.prepareStatement("SELECT count(*) FROM jdbc WHERE id = ANY (?)");
        Array ids = connection.createArrayOf("int4", new Integer[] {2, 3, -1});
        among.setArray(1, ids);
        ResultSet result = among.executeQuery();
        result.next();
        same(2, result.getInt(1));
    }

    static void errors() throws Exception {
        try {
            one("SELECT * FROM nothing");
            throw new AssertionError("there is nothing");
        } catch (PSQLException missing) {
            same("42P01", missing.getSQLState());
            same(15, missing.getServerErrorMessage().getPosition());
        }
        try {
            one("INSERT INTO jdbc (id) VALUES (3) RETURNING id");
            throw new AssertionError("a key came twice");
        } catch (PSQLException twice) {
            same("jdbc_pkey", twice.getServerErrorMessage().getConstraint());
        }
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS nothing");
            same("table \"nothing\" does not exist, skipping", statement.getWarnings().getMessage());
            statement.setQueryTimeout(1);
            statement.execute("SELECT pg_sleep(60)");
            throw new AssertionError("it took a minute");
        } catch (SQLException late) {
            same("57014", late.getSQLState());
        }
    }

    static void metadata() throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE jdbc_child (a int REFERENCES jdbc(id) ON DELETE CASCADE, b varchar(20) NOT NULL DEFAULT 'x', PRIMARY KEY (b, a))");
            statement.execute("CREATE VIEW jdbc_view AS SELECT id FROM jdbc");
        }
        DatabaseMetaData about = connection.getMetaData();
        same(List.of("jdbc_child|TABLE", "jdbc_view|VIEW", "jdbc|TABLE"),
            rows(about.getTables(null, "public", "jdbc%", new String[] {"TABLE", "VIEW"}), "TABLE_NAME", "TABLE_TYPE").stream().sorted().toList());
        same(List.of("a|int4|NO|null", "b|varchar|NO|'x'"),
            rows(about.getColumns(null, "public", "jdbc_child", "%"), "COLUMN_NAME", "TYPE_NAME", "IS_NULLABLE", "COLUMN_DEF").stream()
                .map(row -> row.replace("::character varying", "")).toList());
        same(List.of("b|1", "a|2"), rows(about.getPrimaryKeys(null, "public", "jdbc_child"), "COLUMN_NAME", "KEY_SEQ"));
        same(List.of("jdbc|id|jdbc_child|a"),
            rows(about.getImportedKeys(null, "public", "jdbc_child"), "PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME"));
        same(List.of("jdbc_child_pkey|b", "jdbc_child_pkey|a"),
            rows(about.getIndexInfo(null, "public", "jdbc_child", true, true), "INDEX_NAME", "COLUMN_NAME"));
        ResultSetMetaData columns = connection.prepareStatement("SELECT b AS name, 1 AS one FROM jdbc_child").getMetaData();
        same("jdbc_child", columns.getTableName(1));
        same(ResultSetMetaData.columnNoNulls, columns.isNullable(1));
        same("", columns.getTableName(2));
    }

    static void rewriting(String url) throws Exception {
        String options = url.contains("?") ? "&" : "?";
        try (Connection other = DriverManager.getConnection(url + options + "user=tester&reWriteBatchedInserts=true&preferQueryMode=extendedCacheEverything")) {
            PreparedStatement insert = other.prepareStatement("INSERT INTO jdbc (t, s) VALUES (?, ?)");
            for (int i = 0; i < 33; i++) {
                insert.setString(1, "rewritten");
                insert.setInt(2, i);
                insert.addBatch();
            }
            insert.executeBatch();
        }
        try (Connection simple = DriverManager.getConnection(url + options + "user=tester&preferQueryMode=simple")) {
            PreparedStatement select = simple.prepareStatement("SELECT count(*) + ? FROM jdbc WHERE t = ?");
            select.setInt(1, -3);
            select.setString(2, "rewritten");
            ResultSet result = select.executeQuery();
            result.next();
            same(30, result.getInt(1));
        }
    }
}
