//! What an update costs per document, by the size of the document.
//!
//!     cargo bench -p nestor-query --bench update
//!
//! Each document has a counter in front of and behind its padding, a string field of the padding's size,
//! and an array of small documents. Untouched parts are copied, so time grows with the copy only.

use nestor_model::{Document, RawDocBuf, Value, doc};
use nestor_query::update::{Applied, Update, UpdateOptions};
use nestor_query::{OpContext, Scope};
use std::hint::black_box;
use std::time::{Duration, Instant};

const SIZES: [usize; 3] = [300, 10 * 1024, 100 * 1024];

/// A document of about `bytes`: half a string, half an array of documents.
fn document(bytes: usize) -> RawDocBuf {
    let items: Vec<Value> = (0..(bytes / 2 / 30) as i32)
        .map(|i| doc! { "k": i, "s": "item" }.into())
        .collect();
    let doc = doc! {
        "_id": 1,
        "n": 1,
        "pad": "x".repeat(bytes / 2).as_str(),
        "items": items,
        "last": 1,
    };
    doc.to_raw()
}

fn main() {
    // `cargo test --benches` passes no `--bench`: then once is enough.
    let time = if std::env::args().any(|a| a == "--bench") {
        Duration::from_millis(300)
    } else {
        Duration::ZERO
    };
    let updates: [(&str, Document); 5] = [
        ("$inc in front", doc! {"$inc": doc! {"n": 1}}),
        ("$inc behind", doc! {"$inc": doc! {"last": 1}}),
        ("$set longer", doc! {"$set": doc! {"n": "longer than before"}}),
        ("$push", doc! {"$push": doc! {"items": 1}}),
        ("$set no change", doc! {"$set": doc! {"n": 1}}),
    ];
    println!("{:16} {:>12} {:>12}", "update", "bytes", "ns/document");
    for (name, update) in updates {
        let update = Update::parse((&update).into(), UpdateOptions::default(), &mut Scope::new()).expect("valid");
        for size in SIZES {
            let doc = document(size);
            let op = OpContext::default();
            let begun = Instant::now();
            let mut count = 0u32;
            while count == 0 || begun.elapsed() < time {
                for _ in 0..64 {
                    let applied = update.apply(black_box(doc.as_raw()), None, &op).expect("applies");
                    assert_eq!(matches!(applied, Applied::NoChange), name == "$set no change");
                    black_box(applied);
                }
                count += 64;
            }
            let each = begun.elapsed().as_nanos() / u128::from(count);
            println!("{name:16} {:>12} {each:>12}", doc.as_bytes().len());
        }
    }
}
