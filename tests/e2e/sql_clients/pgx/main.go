// pgx, unmodified: `pgx URL`. Prints the names of the steps that went well.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

var background = context.Background()

func same(expected, found any) error {
	if !reflect.DeepEqual(expected, found) {
		return fmt.Errorf("expected %v and found %v", expected, found)
	}
	return nil
}

func state(err error) string {
	var told *pgconn.PgError
	if errors.As(err, &told) {
		return told.Code
	}
	return fmt.Sprint(err)
}

func one[T any](c *pgx.Conn, query string, arguments ...any) (T, error) {
	var out T
	err := c.QueryRow(background, query, arguments...).Scan(&out)
	return out, err
}

func types(c *pgx.Conn) error {
	_, err := c.Exec(background, `CREATE TABLE pgx (id int PRIMARY KEY, t text, n numeric(10,3), z timestamptz, d date, j jsonb, ts text[],
		ns int[], b bytea, o bool, f float8, l int8, i interval, u uuid, h time, p timestamp, r real, s smallint, rg int4range, bt bit(5))`)
	if err != nil {
		return err
	}
	var number pgtype.Numeric
	if err := number.Scan("12.345"); err != nil {
		return err
	}
	uuid := [16]byte{1, 2, 15: 3}
	ranged := pgtype.Range[int32]{Lower: 1, Upper: 5, LowerType: pgtype.Inclusive, UpperType: pgtype.Exclusive, Valid: true}
	given := []any{1, "text", number, time.Unix(1, 5000).UTC(), time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC), map[string]any{"a": []any{1.0, nil}},
		[]string{"a", `b"`}, []int32{1, -2}, []byte{0, 255}, true, 1.5, int64(1) << 60, time.Hour * 26, uuid, pgtype.Time{Microseconds: 3723000000, Valid: true},
		time.Date(2020, 1, 2, 3, 4, 5, 6000000, time.UTC), float32(2.5), int16(-7), ranged, pgtype.Bits{Bytes: []byte{0xa8}, Len: 5, Valid: true}}
	_, err = c.Exec(background, "INSERT INTO pgx VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20)", given...)
	if err != nil {
		return err
	}
	var (
		z, d, p time.Time
		j       map[string]any
		ts      []string
		ns      []int32
		b       []byte
		n       pgtype.Numeric
		i       pgtype.Interval
		u       [16]byte
		h       pgtype.Time
		r       float32
		s       int16
		rg      pgtype.Range[int32]
		bt      pgtype.Bits
	)
	err = c.QueryRow(background, "SELECT z, d, p, j, ts, ns, b, n, i, u, h, r, s, rg, bt FROM pgx WHERE id = $1", 1).
		Scan(&z, &d, &p, &j, &ts, &ns, &b, &n, &i, &u, &h, &r, &s, &rg, &bt)
	if err != nil {
		return err
	}
	decimal, _ := n.MarshalJSON()
	return errors.Join(same(int64(1), z.Unix()), same("2020-01-02", d.Format("2006-01-02")), same(given[15], p), same(given[5], j), same(given[6], ts),
		same(given[7], ns), same(given[8], b), same("12.345", string(decimal)), same(int64(26*3600*1e6), i.Microseconds+int64(i.Days)*86400*1e6), same(uuid, u),
		same(given[14], h), same(given[16], r), same(given[17], s), same(ranged, rg), same(given[19], bt))
}

func rows(c *pgx.Conn) error {
	type row struct {
		ID   int `db:"id"`
		T    *string
		Some []int32 `db:"ns"`
	}
	result, _ := c.Query(background, "SELECT id, t, ns FROM pgx WHERE id = ANY ($1)", []int32{1, 2})
	found, err := pgx.CollectRows(result, pgx.RowToStructByName[row])
	if err != nil {
		return err
	}
	if err := same(1, len(found)); err != nil {
		return err
	}
	nested, err := one[[][]int32](c, "SELECT ARRAY[[1,2],[3,4]]")
	return errors.Join(err, same([][]int32{{1, 2}, {3, 4}}, nested))
}

func modes(c *pgx.Conn) error {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		found, err := one[int](c, "SELECT $1::int + 1 WHERE $2 = 'it''s'", mode, 5, "it's")
		if err := errors.Join(err, same(6, found)); err != nil {
			return fmt.Errorf("%v: %w", mode, err)
		}
	}
	return nil
}

func copies(c *pgx.Conn) error {
	source := pgx.CopyFromSlice(1000, func(i int) ([]any, error) {
		return []any{i + 10, fmt.Sprint(i), time.Unix(int64(i), 0), []int32{int32(i)}}, nil
	})
	count, err := c.CopyFrom(background, pgx.Identifier{"pgx"}, []string{"id", "t", "z", "ns"}, source)
	if err := errors.Join(err, same(int64(1000), count)); err != nil {
		return err
	}
	sum, err := one[int](c, "SELECT sum(ns[1])::int FROM pgx WHERE id >= 10")
	if err := errors.Join(err, same(999*500, sum)); err != nil {
		return err
	}
	// A file that fails leaves nothing, and the connection goes on.
	broken := errors.New("the source broke")
	_, err = c.CopyFrom(background, pgx.Identifier{"pgx"}, []string{"id"}, pgx.CopyFromFunc(func() ([]any, error) { return nil, broken }))
	if err == nil {
		return errors.New("a broken source was copied")
	}
	count, err = c.CopyFrom(background, pgx.Identifier{"pgx"}, []string{"id"}, pgx.CopyFromRows([][]any{{5000}, {1}}))
	if err := errors.Join(same("23505", state(err))); err != nil {
		return err
	}
	left, err := one[int](c, "SELECT count(*)::int FROM pgx WHERE id = 5000")
	return errors.Join(err, same(0, left))
}

func batches(c *pgx.Conn) error {
	batch := &pgx.Batch{}
	sum := 0
	for i := range 5 {
		batch.Queue("SELECT $1::int + id FROM pgx WHERE id = $2", i, 1).QueryRow(func(row pgx.Row) error {
			var n int
			err := row.Scan(&n)
			sum += n
			return err
		})
	}
	batch.Queue("UPDATE pgx SET t = 'batch' WHERE id = $1", 1)
	if err := errors.Join(c.SendBatch(background, batch).Close(), same(15, sum)); err != nil {
		return err
	}
	// Statements of one batch stand and fall together.
	failing := &pgx.Batch{}
	failing.Queue("INSERT INTO pgx (id) VALUES (6000)")
	failing.Queue("INSERT INTO pgx (id) VALUES (6000)")
	if err := same("23505", state(c.SendBatch(background, failing).Close())); err != nil {
		return err
	}
	left, err := one[int](c, "SELECT count(*)::int FROM pgx WHERE id = 6000")
	return errors.Join(err, same(0, left))
}

func transactions(c *pgx.Conn) error {
	refused := errors.New("no")
	err := pgx.BeginTxFunc(background, c, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(outer pgx.Tx) error {
		if _, err := outer.Exec(background, "INSERT INTO pgx (id) VALUES (7000)"); err != nil {
			return err
		}
		err := pgx.BeginFunc(background, outer, func(inner pgx.Tx) error {
			_, _ = inner.Exec(background, "INSERT INTO pgx (id) VALUES (7001)")
			return refused
		})
		if !errors.Is(err, refused) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	tx, err := c.BeginTx(background, pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly, DeferrableMode: pgx.Deferrable})
	if err != nil {
		return err
	}
	_, err = tx.Exec(background, "INSERT INTO pgx (id) VALUES (7002)")
	if err := errors.Join(same("25006", state(err)), tx.Rollback(background)); err != nil {
		return err
	}
	kept, err := one[int](c, "SELECT count(*)::int FROM pgx WHERE id IN (7000, 7001, 7002)")
	return errors.Join(err, same(1, kept))
}

func enums(c *pgx.Conn) error {
	if _, err := c.Exec(background, "CREATE TYPE pgx_mood AS ENUM ('sad', 'ok')"); err != nil {
		return err
	}
	loaded, err := c.LoadTypes(background, []string{"pgx_mood", "_pgx_mood"})
	if err != nil {
		return err
	}
	c.TypeMap().RegisterTypes(loaded)
	moods, err := one[[]string](c, "SELECT ARRAY['ok', $1]::pgx_mood[]", "sad")
	return errors.Join(err, same([]string{"ok", "sad"}, moods))
}

func notices(url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	var told []string
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { told = append(told, notice.Severity+" "+notice.Message) }
	c, err := pgx.ConnectConfig(background, config)
	if err != nil {
		return err
	}
	defer c.Close(background)
	_, err = c.Exec(background, "DROP TABLE IF EXISTS nothing")
	return errors.Join(err, same([]string{`NOTICE table "nothing" does not exist, skipping`}, told))
}

func cancels(url string) error {
	c, err := pgx.Connect(background, url)
	if err != nil {
		return err
	}
	defer c.Close(background)
	soon, cancel := context.WithTimeout(background, 200*time.Millisecond)
	defer cancel()
	if _, err := c.Exec(soon, "SELECT pg_sleep(60)"); err == nil {
		return errors.New("it took a minute")
	}
	return nil
}

func pools(url string) error {
	pool, err := pgxpool.New(background, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	var all sync.WaitGroup
	failed := make(chan error, 50)
	for i := range 50 {
		all.Add(1)
		go func() {
			defer all.Done()
			var n int
			if err := pool.QueryRow(background, "SELECT $1::int", i).Scan(&n); err != nil || n != i {
				failed <- fmt.Errorf("%d: %v", n, err)
			}
		}()
	}
	all.Wait()
	close(failed)
	return <-failed
}

func main() {
	url := os.Args[1]
	c, err := pgx.Connect(background, url)
	if err != nil {
		panic(err)
	}
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"types", func() error { return types(c) }},
		{"rows", func() error { return rows(c) }},
		{"modes", func() error { return modes(c) }},
		{"copies", func() error { return copies(c) }},
		{"batches", func() error { return batches(c) }},
		{"transactions", func() error { return transactions(c) }},
		{"enums", func() error { return enums(c) }},
		{"notices", func() error { return notices(url) }},
		{"cancels", func() error { return cancels(url) }},
		{"pools", func() error { return pools(url) }},
	} {
		if err := step.run(); err != nil {
			fmt.Fprintf(os.Stderr, "step %s: %v\n", step.name, err)
			os.Exit(1)
		}
		fmt.Println(step.name)
	}
}
