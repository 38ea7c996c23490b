//! Latency that is put between a server and its disk or its clients.

use crate::target::Dial;
use crate::wire::Stream;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Delays `fsync` and `fdatasync` of the program that it is preloaded into, by [`SYNC_VARIABLE`].
const SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shim.so"));
/// The variable that says by how many µs.
pub const SYNC_VARIABLE: &str = "NESTOR_LAB_SYNC_MICROS";

/// Writes the library to `path`, for `LD_PRELOAD`.
///
/// Errors: the file cannot be written, or there was no C compiler when this program was built.
pub fn write_shim(path: &Path) -> Result<(), String> {
    if SHIM.is_empty() {
        return Err("this program was built without a C compiler, and cannot delay a server's disk".into());
    }
    std::fs::write(path, SHIM).map_err(|error| format!("{}: {error}", path.display()))
}

/// The same connections, whose questions take `delay` longer to get there and back.
pub fn delayed(dial: Dial, delay: Duration) -> Dial {
    if delay.is_zero() {
        return dial;
    }
    Arc::new(move || {
        let stream = dial()?;
        Ok(Box::new(Delayed { stream, delay }) as Box<dyn Stream>)
    })
}

/// A stream that waits before each write: to who asks and waits for the answer, a round trip that takes so much longer.
struct Delayed {
    stream: Box<dyn Stream>,
    delay: Duration,
}

impl Read for Delayed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for Delayed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        // Sleeping takes longer than asked for by some 50 µs, so the rest is spun.
        let until = Instant::now() + self.delay;
        std::thread::sleep(self.delay.saturating_sub(Duration::from_micros(100)));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
