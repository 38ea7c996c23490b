//! How threads give way to others.

/// How nice such a thread is to others: each of these gets about nine times as much of a processor as it.
const NICE: i32 = 10;

/// Lets other threads go before this one, for as long as it lives: what it does may take longer, and takes little of a processor that others want.
pub fn come_last() {
    // Where that is refused it is one thread among others.
    let _ = rustix::process::setpriority_process(None, NICE);
}
