//! Expressions and pipelines of any kind, as the fuzz targets `expression` and `pipeline` run them: they end in time with a
//! value or an error. The corpus of both is replayed, and generated ones: the same 300 each time, or as many as fit into `FUZZ_SECONDS`.

use nestor_model::{Array, Document, RawDoc, Value, doc};
use nestor_query::Expr;
use nestor_testkit::expressions::Generator;
use nestor_testkit::{fuzz, pipelines};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest that one input may take where it has 50 ms twice, on a machine that does other things too.
const EACH_MAX: Duration = Duration::from_secs(60);

/// How many programs are generated when no time is given.
const ROUNDS: u64 = 300;

fn replay(target: &str, run: fn(RawDoc<'_>) -> bool) {
    let folder = Path::new("../../fuzz/corpus").join(target);
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus is there") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("a file");
        let doc = RawDoc::validate(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let understood = run(doc);
        let is_seed = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().contains('-'));
        assert!(understood || !is_seed, "{} is not understood", path.display());
        files += 1;
    }
    assert!(files >= 10, "{files} files");
}

#[test]
fn corpora() {
    replay("expression", fuzz::expression);
    replay("pipeline", fuzz::pipeline);
}

/// Runs what `make` generates until the time is over; at least `share` percent of it has to be understood.
fn generated(seed: u64, share: u64, mut make: impl FnMut(&mut Generator) -> Document, run: fn(RawDoc<'_>) -> bool) {
    let seconds = std::env::var("FUZZ_SECONDS").map_or(0, |text| text.parse().expect("a number of seconds"));
    let seed = std::env::var("FUZZ_SEED").map_or(seed, |text| text.parse().expect("a number"));
    let mut generator = Generator::new(seed, Expr::operators());
    let start = Instant::now();
    let (mut understood, mut made) = (0u64, 0u64);
    while start.elapsed() < Duration::from_secs(seconds) || made < ROUNDS {
        let doc = make(&mut generator);
        let raw = doc.to_raw();
        let begun = Instant::now();
        understood += u64::from(run(raw.as_raw()));
        made += 1;
        assert!(begun.elapsed() < EACH_MAX, "{:?} for {doc:?}", begun.elapsed());
    }
    println!("{understood} of {made} understood");
    assert!(understood * 100 >= made * share, "{understood} of {made} understood");
}

#[test]
fn expressions_end_with_a_value_or_an_error() {
    let make = |generator: &mut Generator| {
        let depth = 1 + generator.random.below(5);
        doc! { "e": generator.expression(depth), "d": generator.random.document(3) }
    };
    generated(21, 10, make, fuzz::expression);
}

#[test]
fn pipelines_end_with_documents_or_an_error() {
    let make = |generator: &mut Generator| {
        let count = 1 + generator.random.below(6);
        let docs: Array = (0..count).map(|_| Value::from(generator.random.document(2))).collect();
        doc! { "p": pipelines::pipeline(generator, 2), "d": docs }
    };
    generated(22, 10, make, fuzz::pipeline);
}
