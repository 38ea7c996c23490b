//! What happens beside a statement: Ctrl-C ends it, and one that takes long shows that it goes on.

use crate::client::postgres::Canceller;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Statements that are faster show nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// The status of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// The statement that runs.
struct Running {
    canceller: Canceller,
    begun: Instant,
    rows: u64,
    /// It shows nothing any more: its rows are printed.
    is_quiet: bool,
    bar: Option<ProgressBar>,
}

type Shared = Arc<Mutex<Option<Running>>>;

/// Watches statements.
pub struct Watch {
    running: Shared,
}

/// A statement is being carried out, as long as this lives.
pub struct Watched<'w> {
    watch: &'w Watch,
}

fn lock(running: &Shared) -> MutexGuard<'_, Option<Running>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// Begins to listen to Ctrl-C. `shows`: progress is shown on standard error.
    pub fn start(shows: bool) -> Result<Self, String> {
        let running = Shared::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let seen = running.clone();
        let watching = move || runtime.block_on(watch(&seen, shows));
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(watching);
        thread.map_err(|error| error.to_string())?;
        Ok(Self { running })
    }

    /// A statement begins; `canceller` ends it.
    pub fn statement(&self, canceller: Canceller) -> Watched<'_> {
        *lock(&self.running) = Some(Running {
            canceller,
            begun: Instant::now(),
            rows: 0,
            is_quiet: false,
            bar: None,
        });
        Watched { watch: self }
    }
}

impl Watched<'_> {
    /// A row has come.
    pub fn row(&self) {
        if let Some(running) = &mut *lock(&self.watch.running) {
            running.rows += 1;
        }
    }

    /// Clears what is shown: something else is printed now.
    pub fn quiet(&self) {
        if let Some(running) = &mut *lock(&self.watch.running)
            && let Some(bar) = running.bar.take()
        {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.quiet();
        *lock(&self.watch.running) = None;
    }
}

async fn watch(running: &Shared, shows: bool) {
    loop {
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => {
                if pressed.is_err() {
                    return;
                }
                let canceller = lock(running).as_ref().map(|running| running.canceller.clone());
                match canceller {
                    // The statement ends with an error of the server, which tells of it.
                    Some(canceller) => drop(canceller.cancel()),
                    None => std::process::exit(INTERRUPTED),
                }
            }
            () = tokio::time::sleep(PAUSE) => {
                if shows && let Some(running) = &mut *lock(running) {
                    show(running);
                }
            }
        }
    }
}

fn show(running: &mut Running) {
    if running.is_quiet || running.begun.elapsed() < PATIENCE {
        return;
    }
    if running.rows > 0 {
        running.is_quiet = true;
        return;
    }
    let bar = running.bar.get_or_insert_with(|| {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg} (Ctrl-C ends it)") {
            bar.set_style(style);
        }
        bar.with_elapsed(running.begun.elapsed())
    });
    bar.tick();
}
