//! Geographic indexes find what collection scans find, and the nearest first: random places, lines and areas, many of them on
//! round coordinates, at poles and at the antimeridian, and random shapes around them.

#[path = "shared/database.rs"]
mod database;

use database::Database;
use nestor_model::{Document, Value, ValueRef, doc};
use nestor_testkit::random::Random;

const EARTH_RADIUS: f64 = 6_378_100.0;

impl Database {
    /// Whether the document could be stored.
    fn insert(&mut self, collection: &str, doc: &Document) -> bool {
        let reply = self.run(doc! { "insert": collection, "documents": list([doc.clone().into()]) });
        reply.get("writeErrors").is_none()
    }

    /// The documents of a find; `None` if it is refused.
    fn find(&mut self, collection: &str, filter: &Document, limit: i32, hint: Option<&str>) -> Option<Vec<Document>> {
        let measured = filter.get("at").and_then(ValueRef::as_document);
        let measured = measured.is_some_and(|at| at.iter().any(|(name, _)| name.starts_with("$near")));
        let mut command = doc! { "find": collection, "filter": filter.clone(), "batchSize": 10_000, "limit": limit };
        if let Some(hint) = hint {
            command.push("hint", hint);
        }
        if measured {
            command.push("projection", doc! { "far": doc! { "$meta": "geoNearDistance" } });
        }
        let reply = self.run(command);
        let batch = reply.get("cursor")?.as_document()?.get("firstBatch")?.as_array()?;
        Some(
            batch
                .iter()
                .filter_map(ValueRef::as_document)
                .map(|doc| doc.to_document())
                .collect(),
        )
    }

    fn ids(&mut self, collection: &str, filter: &Document, hint: Option<&str>) -> Option<Vec<i32>> {
        let found = self.find(collection, filter, 0, hint)?;
        let mut ids: Vec<i32> = found.iter().filter_map(id).collect();
        ids.sort_unstable();
        Some(ids)
    }
}

fn id(doc: &Document) -> Option<i32> {
    match doc.get("_id") {
        Some(ValueRef::Int32(id)) => Some(id),
        _ => None,
    }
}

fn far(doc: &Document) -> f64 {
    match doc.get("far") {
        Some(ValueRef::Double(far)) => far,
        other => panic!("{other:?} is no distance"),
    }
}

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    Value::Array(items.into_iter().collect())
}

fn pair((x, y): (f64, f64)) -> Value {
    list([x.into(), y.into()])
}

fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low + (high - low) * f64::from(random.below(1_000_001) as u32) / 1_000_000.0
}

fn place(random: &mut Random) -> (f64, f64) {
    match random.below(4) {
        0 => (
            *random.pick(&[-180.0, -170.0, -90.0, -10.0, 0.0, 10.0, 45.0, 90.0, 180.0]),
            *random.pick(&[-90.0, -80.0, -45.0, -10.0, 0.0, 10.0, 45.0, 80.0, 90.0]),
        ),
        1 => (between(random, -180.0, 180.0), between(random, -90.0, 90.0)),
        2 => (
            *random.pick(&[179.99, -179.99, 180.0, -180.0]),
            between(random, -5.0, 5.0),
        ),
        _ => (between(random, 9.5, 10.5), between(random, 44.5, 45.5)),
    }
}

/// A ring of degrees around a place, closed.
fn ring(random: &mut Random, radius: f64) -> Value {
    let (center, corners) = (place(random), 3 + random.below(6));
    let mut points: Vec<Value> = (0..corners)
        .map(|corner| {
            let angle = std::f64::consts::TAU * corner as f64 / corners as f64;
            let lng = (center.0 + radius * angle.cos() + 540.0) % 360.0 - 180.0;
            pair((lng, (center.1 + radius * angle.sin()).clamp(-89.9, 89.9)))
        })
        .collect();
    points.extend(points.first().cloned());
    list(points)
}

fn geojson(kind: &str, coordinates: Value) -> Value {
    doc! { "type": kind, "coordinates": coordinates }.into()
}

fn geometry(random: &mut Random) -> Value {
    let several = |random: &mut Random, least: usize| {
        let count = least + random.below(4);
        list((0..count).map(|_| pair(place(random))).collect::<Vec<_>>())
    };
    match random.below(10) {
        0..=3 => geojson("Point", pair(place(random))),
        4 => pair(place(random)),
        5 => geojson("LineString", several(random, 2)),
        6 => geojson("MultiPoint", several(random, 1)),
        _ => {
            let radius = *random.pick(&[0.001, 0.1, 1.0, 10.0]);
            geojson("Polygon", list([ring(random, radius)]))
        }
    }
}

fn shape(random: &mut Random) -> Document {
    let polygon = |random: &mut Random| {
        let radius = *random.pick(&[0.01, 1.0, 10.0, 40.0]);
        doc! { "type": "Polygon", "coordinates": list([ring(random, radius)]) }
    };
    match random.below(6) {
        0 | 1 => {
            let radius = *random.pick(&[1e-9, 0.0001, 0.01, 0.2, 1.0, 2.0, 3.2]);
            doc! { "$geoWithin": doc! { "$centerSphere": list([pair(place(random)), radius.into()]) } }
        }
        2 => doc! { "$geoWithin": doc! { "$geometry": polygon(random) } },
        3 => {
            let mut polygon = polygon(random);
            let name = doc! { "name": "urn:x-mongodb:crs:strictwinding:EPSG:4326" };
            polygon.push("crs", doc! { "type": "name", "properties": name });
            doc! { "$geoWithin": doc! { "$geometry": polygon } }
        }
        4 => doc! { "$geoIntersects": doc! { "$geometry": polygon(random) } },
        _ => match geometry(random) {
            geometry @ Value::Document(_) => doc! { "$geoIntersects": doc! { "$geometry": geometry } },
            _ => doc! { "$geoIntersects": doc! { "$geometry": geojson("Point", pair(place(random))) } },
        },
    }
}

/// By a formula that nothing else here is computed by.
fn metres(a: (f64, f64), b: (f64, f64)) -> f64 {
    let (lng, lat) = ((a.0 - b.0).to_radians(), (a.1 - b.1).to_radians());
    let h = (lat / 2.0).sin().powi(2) + a.1.to_radians().cos() * b.1.to_radians().cos() * (lng / 2.0).sin().powi(2);
    2.0 * EARTH_RADIUS * h.sqrt().min(1.0).asin()
}

#[test]
fn cells_find_what_scans_find() {
    let mut random = Random::new(20_251_122);
    let mut database = Database::new();
    let indexes = list([
        doc! { "key": doc! { "at": "2dsphere" }, "name": "at" }.into(),
        doc! { "key": doc! { "a": 1, "at": "2dsphere", "b": -1 }, "name": "compound" }.into(),
    ]);
    database.must(doc! { "createIndexes": "indexed", "indexes": indexes });
    let mut stored = 0;
    for id in 0..400 {
        let doc =
            doc! { "_id": id, "at": geometry(&mut random), "a": random.below(2) as i32, "b": random.below(3) as i32 };
        if database.insert("indexed", &doc) {
            assert!(database.insert("plain", &doc));
            stored += 1;
        }
    }
    assert!(stored > 150, "most geometries are valid, but only {stored} were");
    let mut found = 0;
    for _ in 0..100 {
        let mut filter = doc! { "at": shape(&mut random) };
        if random.below(3) == 0 {
            filter.push("a", random.below(2) as i32);
            filter.push("b", doc! { "$gt": random.below(2) as i32 });
        }
        let Some(expected) = database.ids("plain", &filter, None) else {
            continue;
        };
        found += expected.len();
        for hint in [None, Some("at"), Some("compound")] {
            let by_index = database.ids("indexed", &filter, hint);
            assert_eq!(by_index.as_ref(), Some(&expected), "{filter:?}, hint {hint:?}");
        }
    }
    assert!(found > 500, "only {found} documents were looked for");
}

#[test]
fn the_nearest_comes_first() {
    let mut random = Random::new(20_251_123);
    let mut database = Database::new();
    let indexes = list([doc! { "key": doc! { "at": "2dsphere" }, "name": "at" }.into()]);
    database.must(doc! { "createIndexes": "places", "indexes": indexes });
    let places: Vec<(f64, f64)> = (0..400).map(|_| place(&mut random)).collect();
    for (id, at) in places.iter().enumerate() {
        let doc = doc! { "_id": id as i32, "at": geojson("Point", pair(*at)) };
        assert!(database.insert("places", &doc));
    }
    for _ in 0..120 {
        let from = place(&mut random);
        let min = *random.pick(&[0.0, 0.0, 500.0, 1e6]);
        let max = *random.pick(&[1e3, 1e5, 1e7, 3e7]);
        let limit = *random.pick(&[0, 1, 10, 50]);
        let near = doc! { "$geometry": geojson("Point", pair(from)), "$minDistance": min, "$maxDistance": max };
        let filter = doc! { "at": doc! { "$near": near } };
        let found = database
            .find("places", &filter, limit as i32, None)
            .expect("is not refused");
        let mut expected: Vec<f64> = places.iter().map(|at| metres(*at, from)).collect();
        // Points on the very border are left out of the comparison.
        expected.retain(|far| min - 1e-3 <= *far && *far <= max + 1e-3);
        assert!(expected.iter().all(|far| min == 0.0 || far - min > 1e-2), "{filter:?}");
        expected.sort_by(f64::total_cmp);
        expected.truncate(if limit == 0 { usize::MAX } else { limit });
        assert_eq!(found.len(), expected.len(), "{filter:?}");
        for (doc, expected) in found.iter().zip(expected) {
            // The formula is worst for what is opposite.
            assert!((far(doc) - expected).abs() < 0.5, "{filter:?}: {doc:?}, {expected}");
        }
    }
}

/// What an explained find says of how it ran.
fn stat(database: &mut Database, collection: &str, filter: &Document, name: &str) -> i32 {
    let find = doc! { "find": collection, "filter": filter.clone() };
    let reply = database.must(doc! { "explain": find, "verbosity": "executionStats" });
    match reply
        .get("executionStats")
        .and_then(ValueRef::as_document)
        .and_then(|stats| stats.get(name))
    {
        Some(ValueRef::Int32(count)) => count,
        other => panic!("{name} is {other:?}"),
    }
}

/// Rings that turn out to be crowded end nearer: then few of the places along lines are looked at, and those that are found
/// are the nearest all the same, each once.
#[test]
fn crowds_along_lines_are_not_searched_whole() {
    const ASKED: usize = 40;
    let mut random = Random::new(20_261_127);
    let mut database = Database::new();
    let indexes = list([
        doc! { "key": doc! { "at": "2dsphere" }, "name": "at" }.into(),
        doc! { "key": doc! { "of": 1, "near": "2dsphere" }, "name": "compound" }.into(),
    ]);
    database.must(doc! { "createIndexes": "lines", "indexes": indexes });
    let mut places = Vec::new();
    for batch in 0..10 {
        let documents: Vec<Value> = (0..1000)
            .map(|n| {
                // Some hundred are at one place.
                let at = match n % 20 {
                    0 => (1.0, 1.0),
                    line => {
                        let along = between(&mut random, -60.0, 60.0);
                        (along, -30.0 + 30.0 * f64::from(line % 3) + along / 10.0)
                    }
                };
                places.push(at);
                let point = geojson("Point", pair(at));
                doc! { "_id": batch * 1000 + n, "at": point.clone(), "of": n % 2, "near": point }.into()
            })
            .collect();
        database.must(doc! { "insert": "lines", "documents": documents });
    }
    let mut keys = 0;
    for asked in 0..ASKED {
        let from = match asked {
            0 => (1.0, 1.0),
            _ => (between(&mut random, -60.0, 60.0), between(&mut random, -60.0, 60.0)),
        };
        let limit = *random.pick(&[10, 10, 10, 900, 3_000]);
        let near = doc! { "$near": doc! { "$geometry": geojson("Point", pair(from)) } };
        let compound = random.one_in(3);
        let filter = match compound {
            true => doc! { "near": near, "of": doc! { "$in": list([0.into(), 1.into()]) } },
            false => doc! { "at": near },
        };
        let mut find = doc! { "find": "lines", "filter": filter.clone(), "batchSize": 10_000, "limit": limit };
        find.push("projection", doc! { "far": doc! { "$meta": "geoNearDistance" } });
        let reply = database.must(find.clone());
        let batch = reply.get("cursor").and_then(ValueRef::as_document);
        let batch = batch
            .and_then(|cursor| cursor.get("firstBatch"))
            .and_then(ValueRef::as_array);
        let found: Vec<Document> = batch
            .expect("a batch")
            .iter()
            .filter_map(ValueRef::as_document)
            .map(|doc| doc.to_document())
            .collect();
        let mut expected: Vec<f64> = places.iter().map(|at| metres(*at, from)).collect();
        expected.sort_by(f64::total_cmp);
        expected.truncate(limit as usize);
        assert_eq!(found.len(), expected.len(), "{filter:?}");
        let mut ids: Vec<Option<i32>> = found.iter().map(id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), expected.len(), "{filter:?} finds some twice");
        for (doc, expected) in found.iter().zip(expected) {
            assert!((far(doc) - expected).abs() < 0.5, "{filter:?}: {doc:?}, {expected}");
        }
        if limit == 10 && !compound && asked > 0 {
            let reply = database.must(doc! { "explain": find, "verbosity": "executionStats" });
            let stats = reply.get("executionStats").and_then(ValueRef::as_document);
            match stats.and_then(|stats| stats.get("totalKeysExamined")) {
                Some(ValueRef::Int32(examined)) => keys = keys.max(examined),
                other => panic!("keys are {other:?}"),
            }
        }
    }
    assert!(keys > 0 && keys < 5_000, "{keys} keys were looked at for ten places");
}

#[test]
fn keys_of_points_outside_lead_to_no_document() {
    let mut random = Random::new(20_251_125);
    let mut database = Database::new();
    let index = |kind: &str| list([doc! { "key": doc! { "a": 1, "at": kind }, "name": "at" }.into()]);
    let flat = list([doc! { "key": doc! { "at": "2d" }, "name": "at" }.into()]);
    database.must(doc! { "createIndexes": "sphere", "indexes": index("2dsphere") });
    database.must(doc! { "createIndexes": "flat", "indexes": flat });
    for id in 0..1000 {
        let at = (between(&mut random, -20.0, 20.0), between(&mut random, -20.0, 20.0));
        let doc = doc! { "_id": id, "a": 1, "at": pair(at) };
        assert!(database.insert("sphere", &doc) && database.insert("flat", &doc));
    }
    let square = list([list([
        pair((-5.0, -5.0)),
        pair((5.0, -5.0)),
        pair((5.0, 5.0)),
        pair((-5.0, 5.0)),
        pair((-5.0, -5.0)),
    ])]);
    let shapes = [
        ("sphere", doc! { "$centerSphere": list([pair((1.0, 2.0)), 0.1.into()]) }),
        ("sphere", doc! { "$geometry": geojson("Polygon", square) }),
        ("flat", doc! { "$center": list([pair((1.0, 2.0)), 7.0.into()]) }),
        ("flat", doc! { "$box": list([pair((-3.0, -5.0)), pair((5.0, 6.0))]) }),
    ];
    for (collection, shape) in shapes {
        let filter = doc! { "a": 1, "at": doc! { "$geoWithin": shape } };
        let (found, read) = (
            stat(&mut database, collection, &filter, "nReturned"),
            stat(&mut database, collection, &filter, "totalDocsExamined"),
        );
        assert!(found > 20 && read == found, "{filter:?} read {read} for {found}");
        assert!(stat(&mut database, collection, &filter, "totalKeysExamined") > found);
    }
}

#[test]
fn squares_find_what_scans_find() {
    let mut random = Random::new(20_251_124);
    for bits in [5, 32] {
        let mut database = Database::new();
        let indexes = list([doc! { "key": doc! { "at": "2d", "b": 1 }, "name": "at", "bits": bits }.into()]);
        database.must(doc! { "createIndexes": "indexed", "indexes": indexes });
        let on_plane = |random: &mut Random| {
            let of = |random: &mut Random| match random.below(3) {
                0 => *random.pick(&[-180.0, 0.0, 45.0, 90.0, 180.0]),
                _ => between(random, -180.0, 180.0),
            };
            (of(random), of(random))
        };
        let mut places: Vec<Vec<(f64, f64)>> = Vec::new();
        for id in 0..200 {
            let own: Vec<(f64, f64)> = (0..1 + random.below(2)).map(|_| on_plane(&mut random)).collect();
            let at = match own.as_slice() {
                [only] => pair(*only),
                several => list(several.iter().map(|at| pair(*at))),
            };
            let doc = doc! { "_id": id, "at": at, "b": random.below(2) as i32 };
            assert!(database.insert("indexed", &doc) && database.insert("plain", &doc));
            places.push(own);
        }
        for _ in 0..60 {
            let corner = |random: &mut Random| pair(on_plane(random));
            let shape = match random.below(4) {
                0 => doc! { "$box": list([corner(&mut random), corner(&mut random)]) },
                1 => {
                    let radius = *random.pick(&[0.0, 1.0, 20.0, 100.0]);
                    doc! { "$center": list([corner(&mut random), radius.into()]) }
                }
                2 => {
                    let corners = 3 + random.below(4);
                    doc! { "$polygon": list((0..corners).map(|_| corner(&mut random)).collect::<Vec<_>>()) }
                }
                _ => {
                    let radius = *random.pick(&[0.01, 0.3, 2.0]);
                    doc! { "$centerSphere": list([pair(place(&mut random)), radius.into()]) }
                }
            };
            let filter = doc! { "at": doc! { "$geoWithin": shape } };
            let expected = database.ids("plain", &filter, None).expect("is not refused");
            assert_eq!(
                database.ids("indexed", &filter, None),
                Some(expected),
                "{bits} bits: {filter:?}"
            );
        }
        for _ in 0..40 {
            let (from, limit) = (on_plane(&mut random), *random.pick(&[0, 1, 10]));
            let max = *random.pick(&[5.0, 100.0, 1000.0]);
            let filter = doc! { "at": doc! { "$near": pair(from), "$maxDistance": max } };
            let found = database
                .find("indexed", &filter, limit as i32, None)
                .expect("is not refused");
            let flat = |at: &(f64, f64)| (at.0 - from.0).hypot(at.1 - from.1);
            let nearest = |own: &Vec<(f64, f64)>| own.iter().map(flat).fold(f64::INFINITY, f64::min);
            let mut expected: Vec<f64> = places.iter().map(nearest).filter(|far| *far <= max).collect();
            expected.sort_by(f64::total_cmp);
            expected.truncate(if limit == 0 { usize::MAX } else { limit });
            let found: Vec<f64> = found.iter().map(far).collect();
            assert_eq!(found.len(), expected.len(), "{bits} bits: {filter:?}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() < 1e-9,
                    "{bits} bits: {filter:?}: {found}, {expected}"
                );
            }
        }
    }
}

/// Operands, some of them valid and most of them wrong in one way each.
fn operands() -> Vec<String> {
    let nan = r#"{"$numberDouble":"NaN"}"#;
    let infinite = r#"{"$numberDouble":"Infinity"}"#;
    let strict = r#""crs":{"type":"name","properties":{"name":"urn:x-mongodb:crs:strictwinding:EPSG:4326"}}"#;
    let ring = "[[0,0],[10,0],[10,10],[0,10],[0,0]]";
    let coordinates = [
        "[1,2]".to_owned(),
        "[1]".to_owned(),
        "[]".to_owned(),
        "[1,2,3]".to_owned(),
        "[181,0]".to_owned(),
        "[0,-91]".to_owned(),
        "[-180,0]".to_owned(),
        "[0,90]".to_owned(),
        r#"["1","2"]"#.to_owned(),
        format!("[{nan},0]"),
        format!("[0,{infinite}]"),
        "{\"a\":1,\"b\":2}".to_owned(),
        "5".to_owned(),
        "null".to_owned(),
        "\"x\"".to_owned(),
        "[[1,2],[3,4]]".to_owned(),
        "[[1,2]]".to_owned(),
        "[[1,2],[1,2]]".to_owned(),
        "[[0,0],[180,0]]".to_owned(),
        format!("[{ring}]"),
        format!("[{ring},[[1,1],[2,1],[2,2],[1,1]]]"),
        format!("[{ring},[[20,20],[21,20],[21,21],[20,20]]]"),
        "[[[0,0],[10,0],[10,10],[0,0]],[]]".to_owned(),
        "[[[0,0],[10,10],[10,0],[0,10],[0,0]]]".to_owned(),
        "[[[0,0],[10,0],[10,10]]]".to_owned(),
        "[[[0,0],[10,0],[0,0]]]".to_owned(),
        "[[[0,0],[10,0],[10,0,5],[10,10],[0,0]]]".to_owned(),
        format!("[[{ring}]]"),
        "[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]".to_owned(),
        "[[[0,80],[90,80],[180,80],[-90,80],[0,80]]]".to_owned(),
    ];
    let mut out = Vec::new();
    for kind in [
        "Point",
        "LineString",
        "Polygon",
        "MultiPoint",
        "MultiLineString",
        "MultiPolygon",
        "point",
    ] {
        for coordinates in &coordinates {
            out.push(format!(
                r#"{{"$geometry":{{"type":"{kind}","coordinates":{coordinates}}}}}"#
            ));
        }
        out.push(format!(r#"{{"$geometry":{{"type":"{kind}"}}}}"#));
    }
    for coordinates in &coordinates {
        out.push(format!(
            r#"{{"$geometry":{{"type":"Polygon","coordinates":{coordinates},{strict}}}}}"#
        ));
        out.push(format!(r#"{{"$geometry":{coordinates}}}"#));
        out.push(format!(r#"{{"$geometry":{{"coordinates":{coordinates}}}}}"#));
        let member = format!(r#"{{"type":"Point","coordinates":{coordinates}}}"#);
        out.push(format!(
            r#"{{"$geometry":{{"type":"GeometryCollection","geometries":[{member}]}}}}"#
        ));
        for shape in ["$box", "$polygon", "$center", "$centerSphere"] {
            out.push(format!(r#"{{"{shape}":{coordinates}}}"#));
            out.push(format!(r#"{{"{shape}":[{coordinates},1]}}"#));
        }
        out.push(coordinates.clone());
    }
    for radius in ["0", "-1", "4", "\"1\"", nan, infinite, "null"] {
        out.push(format!(r#"{{"$center":[[1,2],{radius}]}}"#));
        out.push(format!(r#"{{"$centerSphere":[[1,2],{radius}]}}"#));
        let point = r#"{"type":"Point","coordinates":[1,2]}"#;
        out.push(format!(r#"{{"$geometry":{point},"$maxDistance":{radius}}}"#));
        out.push(format!(r#"{{"$geometry":{point},"$minDistance":{radius}}}"#));
    }
    for odd in [
        r#"{}"#,
        r#"{"$geometry":5}"#,
        r#"{"$geometry":{}}"#,
        r#"{"$geometry":{"type":5,"coordinates":[1,2]}}"#,
        r#"{"$geometry":{"type":"GeometryCollection"}}"#,
        r#"{"$geometry":{"type":"GeometryCollection","geometries":[]}}"#,
        r#"{"$geometry":{"type":"GeometryCollection","geometries":5}}"#,
        r#"{"$geometry":{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]],"crs":5}}"#,
        r#"{"$geometry":{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]],"crs":{"type":"name","properties":{"name":"EPSG:1"}}}}"#,
        r#"{"$box":[[0,0],[10,10]],"$center":[[0,0],1]}"#,
        r#"{"$sphere":[[0,0],1]}"#,
        r#"{"$uniqueDocs":true,"$box":[[0,0],[10,10]]}"#,
        "5",
        "null",
    ] {
        out.push(odd.to_owned());
    }
    out
}

/// What a find gives: identifiers in ascending order, or the code of its error.
fn outcome(database: &mut Database, collection: &str, filter: &Document) -> Result<Vec<i32>, i32> {
    let reply = database.run(doc! { "find": collection, "filter": filter.clone(), "batchSize": 10_000 });
    if let Some(ValueRef::Int32(code)) = reply.get("code") {
        return Err(code);
    }
    let batch = reply
        .get("cursor")
        .and_then(ValueRef::as_document)
        .and_then(|c| c.get("firstBatch"));
    let batch = batch.and_then(ValueRef::as_array).expect("a cursor");
    let mut ids: Vec<i32> = batch
        .iter()
        .filter_map(|doc| id(&doc.as_document()?.to_document()))
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Whatever is asked for, an index changes neither the answer nor the error, and explain fails where the find does.
#[test]
fn indexes_change_no_answer_and_no_error() {
    /// No plan finds what is nearest without an index.
    const NO_PLAN: i32 = 291;
    let mut random = Random::new(20_251_126);
    let mut database = Database::new();
    let index = |kind: &str| list([doc! { "key": doc! { "at": kind }, "name": "at" }.into()]);
    database.must(doc! { "createIndexes": "sphere", "indexes": index("2dsphere") });
    database.must(doc! { "createIndexes": "flat", "indexes": index("2d") });
    for id in 0..150 {
        let at = match id % 3 {
            0 => geometry(&mut random),
            1 => pair(place(&mut random)),
            _ => Value::Null,
        };
        let doc = match id % 30 {
            29 => doc! { "_id": id },
            _ => doc! { "_id": id, "at": at },
        };
        if database.insert("sphere", &doc) {
            assert!(database.insert("plain", &doc));
        }
        if database.insert("flat", &doc) {
            assert!(database.insert("plainFlat", &doc));
        }
    }
    let (mut failed, mut succeeded, mut found) = (0, 0, 0);
    for operand in operands() {
        for operator in ["$geoWithin", "$within", "$geoIntersects", "$near", "$nearSphere"] {
            let text = format!(r#"{{"at":{{"{operator}":{operand}}}}}"#);
            let filter = nestor_model::extjson::parse_document(&text).unwrap_or_else(|_| panic!("valid JSON: {text}"));
            for (plain, indexed) in [("plain", "sphere"), ("plainFlat", "flat")] {
                let (expected, got) = (
                    outcome(&mut database, plain, &filter),
                    outcome(&mut database, indexed, &filter),
                );
                match (&expected, &got) {
                    (Err(NO_PLAN), _) => {}
                    _ => assert_eq!(got, expected, "{text} in {indexed}"),
                }
                match &got {
                    Ok(ids) => {
                        succeeded += 1;
                        found += ids.len();
                    }
                    Err(_) => failed += 1,
                }
                let find = doc! { "find": indexed, "filter": filter.clone() };
                let explained = database.run(doc! { "explain": find, "verbosity": "executionStats" });
                let code = match explained.get("code") {
                    Some(ValueRef::Int32(code)) => Err(code),
                    _ => Ok(()),
                };
                assert_eq!(code, got.map(|_| ()), "explain of {text} in {indexed}");
            }
        }
    }
    assert!(
        failed > 1_000 && succeeded > 200 && found > 1_000,
        "{failed} {succeeded} {found}"
    );
}
