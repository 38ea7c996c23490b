use super::sphere::{Part, Polygon, are_within, is_off_circle, point};
use super::{GeoOp, GeoTest};
use nestor_model::extjson;
use nestor_model::{Document, ValueRef};
use s2rst::s2::Point;
use s2rst::s2::edge_distances::distance_from_segment;

fn document(text: &str) -> Document {
    extjson::parse_document(text).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

fn test(op: GeoOp, operand: &str) -> GeoTest {
    let operand = document(operand);
    GeoTest::parse(op, ValueRef::Document(operand.as_ref())).unwrap_or_else(|e| panic!("{operand:?}: {e:?}"))
}

fn holds(test: &GeoTest, value: &str) -> bool {
    let doc = document(&format!(r#"{{"v": {value}}}"#));
    test.matches(doc.as_ref().get("v").expect("the field"))
        .expect("no interrupt")
}

const SQUARE: &str = r#"{"$geometry": {"type": "Polygon", "coordinates": [[[0,0],[10,0],[10,10],[0,10],[0,0]],
    [[4,4],[4,6],[6,6],[6,4],[4,4]]]}}"#;

#[test]
fn what_lies_within_a_polygon() {
    let within = test(GeoOp::Within, SQUARE);
    for (value, expected) in [
        ("[1, 1]", true),
        ("[1, 1, 700]", true),
        ("[5, 5]", false),
        ("[0, 0]", true),
        ("[6, 4]", true),
        ("[11, 1]", false),
        ("[200, 1]", false),
        (r#"{"lng": 1, "lat": 1}"#, true),
        (r#"{"type": "Point", "coordinates": [1, 1]}"#, true),
        (r#"{"type": "LineString", "coordinates": [[1, 1], [9, 1]]}"#, true),
        // Through the hole, into the hole, and along the boundary.
        (r#"{"type": "LineString", "coordinates": [[1, 5], [9, 5]]}"#, false),
        (r#"{"type": "LineString", "coordinates": [[1, 5], [5, 5]]}"#, false),
        (r#"{"type": "LineString", "coordinates": [[0, 0], [10, 0]]}"#, true),
        (
            r#"{"type": "LineString", "coordinates": [[10, 0], [0, 0], [0, 10]]}"#,
            true,
        ),
        // From corner to corner of the hole: through it, and beside it.
        (r#"{"type": "LineString", "coordinates": [[4, 4], [6, 6]]}"#, false),
        (
            r#"{"type": "LineString", "coordinates": [[4, 4], [0, 10], [4, 6]]}"#,
            true,
        ),
        (
            r#"{"type": "Polygon", "coordinates": [[[1,1],[2,1],[2,2],[1,1]]]}"#,
            true,
        ),
        (
            r#"{"type": "Polygon", "coordinates": [[[1,1],[9,1],[9,9],[1,9],[1,1]]]}"#,
            false,
        ),
        // The hole itself, and what has the same hole.
        (
            r#"{"type": "Polygon", "coordinates": [[[4,4],[4,6],[6,6],[6,4],[4,4]]]}"#,
            false,
        ),
        (
            r#"{"type": "Polygon", "coordinates": [[[1,1],[9,1],[9,9],[1,9],[1,1]], [[4,4],[4,6],[6,6],[6,4],[4,4]]]}"#,
            true,
        ),
        (
            r#"{"type": "Polygon", "coordinates": [[[0,0],[10,0],[10,10],[0,10],[0,0]], [[3,3],[3,7],[7,7],[7,3],[3,3]]]}"#,
            true,
        ),
        (r#"{"type": "MultiPoint", "coordinates": [[1, 1], [5, 5]]}"#, false),
        (
            r#"{"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [1, 1]}]}"#,
            true,
        ),
        (r#"{"type": "Nothing", "coordinates": [1, 1]}"#, false),
        (r#""text""#, false),
        ("null", false),
        ("[]", false),
        (r#"["a", "b"]"#, false),
    ] {
        assert_eq!(holds(&within, value), expected, "{value}");
    }
}

#[test]
fn what_intersects() {
    let cases = [
        (SQUARE, "[5, 5]", false),
        (SQUARE, "[4, 4]", true),
        (
            SQUARE,
            r#"{"type": "LineString", "coordinates": [[-1, 5], [11, 5]]}"#,
            true,
        ),
        (
            SQUARE,
            r#"{"type": "LineString", "coordinates": [[4.5, 5], [5.5, 5]]}"#,
            false,
        ),
        (
            SQUARE,
            r#"{"type": "LineString", "coordinates": [[10, 10], [20, 20]]}"#,
            true,
        ),
        (
            SQUARE,
            r#"{"type": "Polygon", "coordinates": [[[4.5,4.5],[5.5,4.5],[5.5,5.5],[4.5,4.5]]]}"#,
            false,
        ),
        (
            SQUARE,
            r#"{"type": "Polygon", "coordinates": [[[-5,-5],[15,-5],[15,15],[-5,15],[-5,-5]]]}"#,
            true,
        ),
        (
            SQUARE,
            r#"{"type": "Polygon", "coordinates": [[[20,0],[30,0],[30,10],[20,0]]]}"#,
            false,
        ),
        (
            r#"{"$geometry": {"type": "Point", "coordinates": [-180, 3]}}"#,
            "[180, 3]",
            true,
        ),
        (
            r#"{"$geometry": {"type": "Point", "coordinates": [17, 90]}}"#,
            "[-60, 90]",
            true,
        ),
        (
            r#"{"$geometry": [5, 0]}"#,
            r#"{"type": "LineString", "coordinates": [[0, 0], [10, 0]]}"#,
            true,
        ),
        (
            r#"{"$geometry": [5, 0.001]}"#,
            r#"{"type": "LineString", "coordinates": [[0, 0], [10, 0]]}"#,
            false,
        ),
        // Lines that touch, and lines over the antimeridian.
        (
            r#"{"$geometry": {"type": "LineString", "coordinates": [[170, 0], [-170, 0]]}}"#,
            r#"{"type": "LineString", "coordinates": [[180, -5], [180, 5]]}"#,
            true,
        ),
        (
            r#"{"$geometry": {"type": "LineString", "coordinates": [[170, 0], [-170, 0]]}}"#,
            r#"{"type": "LineString", "coordinates": [[0, -5], [0, 5]]}"#,
            false,
        ),
    ];
    for (shape, value, expected) in cases {
        assert_eq!(
            holds(&test(GeoOp::Intersects, shape), value),
            expected,
            "{shape} and {value}"
        );
    }
}

#[test]
fn poles_and_large_areas() {
    let cap = r#"{"$geometry": {"type": "Polygon", "coordinates": [[[0,80],[120,80],[-120,80],[0,80]]]}}"#;
    assert!(holds(&test(GeoOp::Within, cap), "[55, 90]"));
    assert!(holds(&test(GeoOp::Within, cap), "[-170, 86]"));
    assert!(!holds(&test(GeoOp::Within, cap), "[0, 0]"));
    let clockwise = r#"{"$geometry": {"type": "Polygon", "coordinates": [[[-5,-5],[-5,5],[5,5],[5,-5],[-5,-5]]],
        "crs": {"type": "name", "properties": {"name": "urn:x-mongodb:crs:strictwinding:EPSG:4326"}}}}"#;
    assert!(!holds(&test(GeoOp::Within, clockwise), "[0, 0]"));
    assert!(holds(&test(GeoOp::Within, clockwise), "[100, 0]"));
    let around = r#"{"type": "Polygon", "coordinates": [[[-20,-20],[20,-20],[20,20],[-20,20],[-20,-20]]]}"#;
    assert!(!holds(&test(GeoOp::Within, clockwise), around));
    assert!(holds(&test(GeoOp::Intersects, clockwise), around));
    let large = r#"{"$centerSphere": [[0, 0], 3]}"#;
    assert!(holds(
        &test(GeoOp::Within, large),
        r#"{"type": "LineString", "coordinates": [[170, 20], [-170, 20]]}"#
    ));
    assert!(!holds(
        &test(GeoOp::Within, large),
        r#"{"type": "LineString", "coordinates": [[170, 0.01], [-170, 0.01]]}"#
    ));
}

/// Whether a point is within a polygon of few degrees by the plane that the polygon's arcs are lines in: the gnomonic
/// projection around its middle, with the winding number summed of angles.
fn winding(ring: &[(f64, f64)], middle: (f64, f64), at: (f64, f64)) -> Option<bool> {
    let project = |(lng, lat): (f64, f64)| {
        let (l, b, b0) = ((lng - middle.0).to_radians(), lat.to_radians(), middle.1.to_radians());
        let depth = b0.sin() * b.sin() + b0.cos() * b.cos() * l.cos();
        (
            b.cos() * l.sin() / depth,
            (b0.cos() * b.sin() - b0.sin() * b.cos() * l.cos()) / depth,
        )
    };
    let at = project(at);
    let corners: Vec<_> = ring
        .iter()
        .map(|c| project(*c))
        .map(|(x, y)| (x - at.0, y - at.1))
        .collect();
    let mut turned = 0.0;
    for (a, b) in corners.iter().zip(corners.iter().cycle().skip(1)) {
        let angle = (a.0 * b.1 - a.1 * b.0).atan2(a.0 * b.0 + a.1 * b.1);
        // Too near to an edge for this arithmetic to tell.
        if std::f64::consts::PI - angle.abs() < 1e-6 {
            return None;
        }
        turned += angle;
    }
    Some(turned.abs() > 1.0)
}

/// Random numbers from 0 to 1.
fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[test]
fn points_in_random_polygons_as_by_winding_numbers() {
    let mut random = numbers(7);
    let (mut inside, mut outside) = (0, 0);
    for _ in 0..300 {
        let middle = (random() * 340.0 - 170.0, random() * 160.0 - 80.0);
        let corners = 3 + (random() * 40.0) as usize;
        // A star: ascending angles around the middle, so that it does not cross itself.
        let ring: Vec<(f64, f64)> = (0..corners)
            .map(|i| {
                let angle = (i as f64 + random() * 0.9) / corners as f64 * std::f64::consts::TAU;
                let size = 0.2 + random() * 2.0;
                (
                    middle.0 + size * angle.cos() / middle.1.to_radians().cos(),
                    middle.1 + size * angle.sin(),
                )
            })
            .collect();
        let points = |ring: &[(f64, f64)]| -> Vec<_> {
            ring.iter()
                .chain(ring.first())
                .map(|(lng, lat)| point(*lng, *lat).expect("in range"))
                .collect()
        };
        let Ok(polygon) = Polygon::new(vec![points(&ring)]) else {
            continue;
        };
        for _ in 0..40 {
            let at = (
                middle.0 + (random() - 0.5) * 5.0 / middle.1.to_radians().cos(),
                middle.1 + (random() - 0.5) * 5.0,
            );
            let (Some(expected), Ok(p)) = (winding(&ring, middle, at), point(at.0, at.1)) else {
                continue;
            };
            assert_eq!(
                polygon.contains(p).expect("no interrupt"),
                expected,
                "{at:?} in {ring:?}"
            );
            let part = Part::Point(p);
            assert_eq!(part.is_within(&polygon).expect("no interrupt"), expected);
            *(if expected { &mut inside } else { &mut outside }) += 1;
        }
    }
    assert!(inside > 1_000 && outside > 1_000, "{inside} inside, {outside} outside");
}

#[test]
fn malformed_polygons_are_refused() {
    for rings in [
        "[]",
        "[[]]",
        "[[[0,0],[1,0],[1,1],[0,1]]]",
        "[[[0,0],[1,0],[0,0]]]",
        "[[[0,0],[1,1],[1,0],[0,1],[0,0]]]",
        "[[[0,0],[2,0],[1,1],[2,2],[0,2],[1,1],[0,0]]]",
        "[[[0,0],[180,0],[90,50],[0,0]]]",
        "[[[0,0],[5,0],[5,5],[0,5],[0,0]], [[0,0],[0,2],[2,2],[2,0],[0,0]]]",
        "[[[0,0],[5,0],[5,5],[0,5],[0,0]], [[7,7],[8,7],[8,8],[7,7]]]",
        "[[[0,0],[5,0],[5,5],[0,5],[0,0]], [[-1,-1],[6,-1],[6,6],[-1,6],[-1,-1]]]",
        "[[[0,0],[9,0],[9,9],[0,9],[0,0]], [[1,1],[8,1],[8,8],[1,8],[1,1]], [[3,3],[4,3],[4,4],[3,3]]]",
        "[[[0,91],[1,0],[1,1],[0,91]]]",
    ] {
        let text = format!(r#"{{"$geometry": {{"type": "Polygon", "coordinates": {rings}}}}}"#);
        let operand = document(&text);
        let parsed = GeoTest::parse(GeoOp::Within, ValueRef::Document(operand.as_ref()));
        assert!(parsed.is_err(), "{rings}");
    }
}

#[test]
fn distances_are_compared_as_they_are_computed() {
    let mut random = numbers(7);
    // So many radians from a point, in some direction.
    let near = |p: Point, by: f64, turn: f64| {
        let across = p.vector().ortho();
        let along = p.vector().cross(across);
        let way = across * turn.cos() + along * turn.sin();
        let to = p.vector() * by.cos() + way * by.sin();
        Point::from_coords(to.x, to.y, to.z)
    };
    let (mut within, mut off) = (0, 0);
    for i in 0..20_000 {
        let radians = [1e-12, 2e-9, 1e-7, 1e-4, 0.02, 0.3, 0.99, 1.5, 3.0][i % 9];
        let p = point(random() * 360.0 - 180.0, random() * 178.0 - 89.0).expect("in range");
        let turn = random() * 7.0;
        let distance = radians * [0.5, 0.999_999, 1.0, 1.000_001, 1.7][i % 5];
        let q = near(p, distance, turn);
        let is_within = are_within(p, q, radians);
        assert_eq!(is_within, p.distance(q).radians() <= radians, "{radians} {p:?} {q:?}");
        within += usize::from(is_within);
        let (a, b) = (near(p, distance, turn + 1.0), near(p, 10.0 * distance + 1e-3, turn));
        if is_off_circle(p, (a, b), radians) {
            off += 1;
            assert!(
                distance_from_segment(p, a, b).radians() > radians,
                "{radians} {p:?} {a:?} {b:?}"
            );
        }
    }
    assert!(within > 5000 && off > 1000, "{within} {off}");
}
