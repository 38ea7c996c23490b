"""Page views with the columns that ClickBench's 43 queries look at, and these queries.

The rows are made by DuckDB, of hashes of their numbers: the same for the same count. What they have of the originals: most searches are empty, few
regions and counters have most of the views, counter 62 has 1 in 130 of them, addresses and titles are long and repeat, users come back, the views of one
counter lie together within an hour. Names and meanings of the columns are those of ClickBench (github.com/ClickHouse/ClickBench). Where several
rows might come first the queries have one more key to sort by, so that there is one answer.
"""

COLUMNS = """WatchID bigint not null, Title text not null, EventTime timestamp not null, EventDate date not null, CounterID int not null, ClientIP int not null,
RegionID int not null, UserID bigint not null, URL text not null, Referer text not null, IsRefresh smallint not null, ResolutionWidth smallint not null,
MobilePhone smallint not null, MobilePhoneModel text not null, TraficSourceID smallint not null, SearchEngineID smallint not null, SearchPhrase text not null,
AdvEngineID smallint not null, WindowClientWidth smallint not null, WindowClientHeight smallint not null, IsLink smallint not null, IsDownload smallint not null,
DontCountHits smallint not null, RefererHash bigint not null, URLHash bigint not null"""

# Uniform and skewed numbers below `n`, another for each salt.
MACROS = [
    "create macro dice(i, salt, n) as (hash(i::bigint * 1000 + salt) % n::ubigint)::bigint",
    "create macro few(i, salt, n) as floor(n * power(dice(i, salt, 1000003) / 1000003.0, 3))::bigint",
    "create macro often(i, salt, n) as floor(n * power(dice(i, salt, 1000003) / 1000003.0, 2))::bigint",
    "create macro words(i, n) as list_aggregate(list_transform(range(n), lambda k: ['maps', 'weather', 'cheap', 'tickets', 'photo', 'house', 'garden', 'recipe', 'film', 'online',"
    " 'watch', 'free', 'city', 'school', 'work', 'buy', 'car', 'music', 'Google', 'forum'][1 + dice(i, 900 + k, 20)]), 'string_agg', ' ')",
    "create macro address(i) as 'http://' || case when dice(i, 70, 60) = 0 then 'www.google.test' when dice(i, 71, 9) = 0 then 'my.google-shop' || dice(i, 72, 50) || '.test'"
    " else 'www.site' || few(i, 73, 3000) || '.test' end || '/' || words(i, 1 + dice(i, 74, 3)) || '/page' || i || '?from=' || dice(i, 75, 1000)",
]

ROWS = """
with
    page as (select i, address(i) as url, words(i, 3 + dice(i, 80, 5)) || ' - ' || i as title from range({count} // 6 + 1) t(i)),
    search as (select i, words(i, 1 + dice(i, 81, 4)) || ' ' || i as phrase from range({count} // 60 + 1) t(i)),
    hit as (
        select i, dice(i, 1, 8) = 0 as searched, often(i // 8, 2, {count} // 5 + 1) as person, few(i, 3, {count} // 6 + 1) as page,
               case when dice(i // 50, 4, 130) = 0 then 62 else 100 + few(i // 50, 5, 6000) end as counter,
               timestamp '2013-07-01' + to_seconds(i * 2678400 // {count}) as moment
        from range({count}) t(i))
select dice(hit.i, 10, 9000000000000000000), case when dice(page.i, 11, 6) = 0 then '' else page.title end, moment, moment::date, counter, dice(person, 12, 4294967296) - 2147483648,
       few(person, 13, 5000), dice(person, 14, 9000000000000000000), page.url, case when dice(hit.i, 15, 5) = 0 then '' else source.url end, (dice(hit.i, 16, 8) = 0)::int,
       [1024, 1280, 1366, 1440, 1600, 1920, 0][1 + dice(person, 17, 7)], case when dice(person, 18, 12) = 0 then 1 + few(person, 19, 80) else 0 end,
       case when dice(person, 18, 12) = 0 then ['iPad', 'iPhone', 'Galaxy', 'Nexus', 'Lumia', 'Desire', 'Xperia'][1 + few(person, 20, 7)] || ' ' || few(person, 21, 20) else '' end,
       few(hit.i, 22, 10) - 1, case when searched then 1 + few(hit.i, 23, 60) else 0 end, case when searched then search.phrase else '' end,
       case when dice(hit.i, 24, 40) = 0 then 1 + few(hit.i, 25, 60) else 0 end, 300 + dice(person, 26, 1700), 200 + dice(person, 27, 900), (dice(hit.i, 28, 10) = 0)::int,
       (dice(hit.i, 29, 60) = 0)::int, (dice(hit.i, 30, 12) = 0)::int, dice(source.i, 31, 9000000000000000000), dice(page.i, 31, 9000000000000000000)
from hit join page on page.i = hit.page join search on search.i = few(hit.i, 6, {count} // 60 + 1) join page as source on source.i = few(hit.i, 7, {count} // 6 + 1)
order by hit.i"""

IN_JULY = "CounterID = 62 and EventDate >= '2013-07-01' and EventDate <= '2013-07-31'"
SUMS = ", ".join(f"sum(ResolutionWidth + {more})" if more else "sum(ResolutionWidth)" for more in range(90))
HOST = r"regexp_replace(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1')"

QUERIES = [
    "select count(*) from hits",
    "select count(*) from hits where AdvEngineID <> 0",
    "select sum(AdvEngineID), count(*), avg(ResolutionWidth) from hits",
    "select avg(UserID) from hits",
    "select count(distinct UserID) from hits",
    "select count(distinct SearchPhrase) from hits",
    "select min(EventDate), max(EventDate) from hits",
    "select AdvEngineID, count(*) n from hits where AdvEngineID <> 0 group by AdvEngineID order by n desc, AdvEngineID",
    "select RegionID, count(distinct UserID) u from hits group by RegionID order by u desc, RegionID limit 10",
    "select RegionID, sum(AdvEngineID), count(*) c, avg(ResolutionWidth), count(distinct UserID) from hits group by RegionID order by c desc, RegionID limit 10",
    "select MobilePhoneModel, count(distinct UserID) u from hits where MobilePhoneModel <> '' group by MobilePhoneModel order by u desc, MobilePhoneModel limit 10",
    "select MobilePhone, MobilePhoneModel, count(distinct UserID) u from hits where MobilePhoneModel <> '' group by 1, 2 order by u desc, 1, 2 limit 10",
    "select SearchPhrase, count(*) c from hits where SearchPhrase <> '' group by SearchPhrase order by c desc, SearchPhrase limit 10",
    "select SearchPhrase, count(distinct UserID) u from hits where SearchPhrase <> '' group by SearchPhrase order by u desc, SearchPhrase limit 10",
    "select SearchEngineID, SearchPhrase, count(*) c from hits where SearchPhrase <> '' group by 1, 2 order by c desc, 1, 2 limit 10",
    "select UserID, count(*) c from hits group by UserID order by c desc, UserID limit 10",
    "select UserID, SearchPhrase, count(*) c from hits group by 1, 2 order by c desc, 1, 2 limit 10",
    "select count(*) from (select UserID, SearchPhrase, count(*) from hits group by UserID, SearchPhrase limit 10) t",
    "select UserID, extract(minute from EventTime) m, SearchPhrase, count(*) c from hits group by 1, 2, 3 order by c desc, 1, 2, 3 limit 10",
    "select UserID from hits where UserID = {user}",
    "select count(*) from hits where URL like '%google%'",
    "select SearchPhrase, min(URL), count(*) c from hits where URL like '%google%' and SearchPhrase <> '' group by SearchPhrase order by c desc, SearchPhrase limit 10",
    "select SearchPhrase, min(URL), min(Title), count(*) c, count(distinct UserID) from hits where Title like '%Google%' and URL not like '%.google.%' and SearchPhrase <> ''"
    " group by SearchPhrase order by c desc, SearchPhrase limit 10",
    "select * from hits where URL like '%google%' order by EventTime, WatchID limit 10",
    "select SearchPhrase from hits where SearchPhrase <> '' order by EventTime, WatchID limit 10",
    "select SearchPhrase from hits where SearchPhrase <> '' order by SearchPhrase limit 10",
    "select SearchPhrase from hits where SearchPhrase <> '' order by EventTime, SearchPhrase limit 10",
    "select CounterID, avg(length(URL)) l, count(*) c from hits where URL <> '' group by CounterID having count(*) > {many} order by l desc, CounterID limit 25",
    f"select {HOST} k, avg(length(Referer)) l, count(*) c, min(Referer) from hits where Referer <> '' group by k having count(*) > {{many}} order by l desc, k limit 25",
    f"select {SUMS} from hits",
    "select SearchEngineID, ClientIP, count(*) c, sum(IsRefresh), avg(ResolutionWidth) from hits where SearchPhrase <> '' group by 1, 2 order by c desc, 1, 2 limit 10",
    "select WatchID, ClientIP, count(*) c, sum(IsRefresh), avg(ResolutionWidth) from hits where SearchPhrase <> '' group by 1, 2 order by c desc, 1, 2 limit 10",
    "select WatchID, ClientIP, count(*) c, sum(IsRefresh), avg(ResolutionWidth) from hits group by 1, 2 order by c desc, 1, 2 limit 10",
    "select URL, count(*) c from hits group by URL order by c desc, URL limit 10",
    "select 1, URL, count(*) c from hits group by 1, URL order by c desc, URL limit 10",
    "select ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3, count(*) c from hits where ClientIP > -2147483640 group by 1, 2, 3, 4 order by c desc, 1 limit 10",
    f"select URL, count(*) v from hits where {IN_JULY} and DontCountHits = 0 and IsRefresh = 0 and URL <> '' group by URL order by v desc, URL limit 10",
    f"select Title, count(*) v from hits where {IN_JULY} and DontCountHits = 0 and IsRefresh = 0 and Title <> '' group by Title order by v desc, Title limit 10",
    f"select URL, count(*) v from hits where {IN_JULY} and IsRefresh = 0 and IsLink <> 0 and IsDownload = 0 group by URL order by v desc, URL limit 10 offset 100",
    "select TraficSourceID, SearchEngineID, AdvEngineID, case when SearchEngineID = 0 and AdvEngineID = 0 then Referer else '' end src, URL dst, count(*) v from hits"
    f" where {IN_JULY} and IsRefresh = 0 group by 1, 2, 3, 4, 5 order by v desc, 1, 2, 3, 4, 5 limit 10 offset 1000",
    f"select URLHash, EventDate, count(*) v from hits where {IN_JULY} and IsRefresh = 0 and TraficSourceID in (-1, 6) and RefererHash = {{referer}} group by 1, 2 order by v desc, 1, 2 limit 10 offset 1",
    f"select WindowClientWidth, WindowClientHeight, count(*) v from hits where {IN_JULY} and IsRefresh = 0 and DontCountHits = 0 and URLHash = {{url}} group by 1, 2 order by v desc, 1, 2 limit 10 offset 1",
    "select date_trunc('minute', EventTime) m, count(*) v from hits where CounterID = 62 and EventDate >= '2013-07-14' and EventDate <= '2013-07-15' and IsRefresh = 0 and DontCountHits = 0"
    " group by 1 order by 1 limit 10 offset 10",
]


def make(duck, count):
    """The table in DuckDB."""
    for macro in MACROS:
        duck.execute(macro)
    duck.execute(f"create table hits ({COLUMNS})")
    duck.execute(f"insert into hits {ROWS.format(count=count)}")


def queries(duck, count):
    """Each with constants that the rows have."""
    user, = duck.execute("select UserID from hits group by 1 order by count(*) desc, 1 limit 1").fetchone()
    referer, = duck.execute("select RefererHash from hits where CounterID = 62 group by 1 order by count(*) desc, 1 limit 1").fetchone()
    url, = duck.execute("select URLHash from hits where CounterID = 62 group by 1 order by count(*) desc, 1 limit 1").fetchone()
    return [query.format(user=user, referer=referer, url=url, many=count // 1000) for query in QUERIES]
