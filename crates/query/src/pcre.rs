//! PCRE2, called so that no match runs long without a look at the statement's interrupt.
//!
//! A match limit cannot give that on its own: it counts backtracking points, begins anew at each position that a match is tried
//! from, and between two counts a repeated item may run over the whole text. So there are two programs for a pattern:
//!
//! - *plain*, for short texts: positions, counts and length multiply to a few milliseconds at most. Where its small limit
//!   does not suffice, the match is begun anew with the other one.
//! - *watched*: compiled with a callout before each item of the pattern ([`PCRE2_AUTO_CALLOUT`]); the callout counts work
//!   and ends the match when it is time to stop. A callout takes more room than a letter, and a program has 64 KiB at most: a
//!   pattern of some ten thousand items that has no room for callouts is tried at one position after the other, with a look
//!   at the interrupt and a small match limit at each.
//!
//! Source: pcre2api and pcre2callout of the PCRE2 documentation, "The match context", "Missing callouts".

#![allow(unsafe_code)]

use nestor_model::Error;
use nestor_model::statement::work;
use pcre2_sys::*;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Longest text that the plain program is tried on.
const SHORT_BYTES_MAX: usize = 512;
/// Steps over the text that a match of the plain program may take: some milliseconds.
const STEPS_MAX: usize = 30_000_000;
/// Backtracking points that one position may take.
const BACKTRACKS_MAX: u32 = 10_000_000;
/// The same without a look at the interrupt, where the text is so long that [`STEPS_MAX`] leaves fewer.
const UNWATCHED_BACKTRACKS_MIN: usize = 100;
/// PCRE2's error for a pattern whose program is longer than 64 KiB; not among the bindings.
const PCRE2_ERROR_PATTERN_TOO_LARGE: c_int = 120;
/// KiB of memory that one match may take.
const HEAP_KIB_MAX: u32 = 65_536;
/// Most stack that compiled code may use for one match; groups repeated over long texts need it.
const JIT_STACK_BYTES: (usize, usize) = (32 * 1024, 8 * 1024 * 1024);

/// Bytes of text that one item of a pattern passes over in the time of a unit of work.
const BYTES_PER_UNIT: usize = 1024;

unsafe extern "C" {
    /// Not among the bindings. `pcre2_callout_block` is not looked at, so it is any pointer here.
    fn pcre2_set_callout_8(
        context: *mut pcre2_match_context_8,
        callout: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int>,
        data: *mut c_void,
    ) -> c_int;
}

/// A compiled pattern in its two forms.
pub(crate) struct Program {
    pattern: String,
    options: u32,
    plain: Code,
    /// Compiled when it is needed.
    watched: OnceLock<Result<Watched, Failure>>,
}

/// How a program is watched.
enum Watched {
    /// By its callouts.
    Callouts(Code),
    /// Between two positions: it matches only where a match may begin.
    Positions(Code),
}

/// Byte ranges of a match and of its groups; `None` for a group that took no part.
pub(crate) type Groups<'g> = dyn Iterator<Item = Option<(usize, usize)>> + 'g;

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// PCRE2's reason: a malformed pattern, a limit.
    Reason(String),
    /// It was time to stop.
    Stopped(Error),
}

impl Failure {
    fn of_code(code: c_int) -> Self {
        let mut text = [0_u8; 256];
        // SAFETY: the buffer is as long as is said; the function writes a text that ends with a zero byte.
        let length = unsafe { pcre2_get_error_message_8(code, text.as_mut_ptr(), text.len()) };
        let length = usize::try_from(length).unwrap_or(0).min(text.len());
        Self::Reason(String::from_utf8_lossy(&text[..length]).into_owned())
    }
}

impl Program {
    /// Compiles. `options` are PCRE2's. Errors: the reason why the pattern is malformed.
    pub(crate) fn new(pattern: &str, options: u32) -> Result<Self, Failure> {
        let options = options | PCRE2_UTF;
        Ok(Self {
            pattern: pattern.into(),
            options,
            plain: Code::new(pattern, options).map_err(Failure::of_code)?,
            watched: OnceLock::new(),
        })
    }

    /// Looks for the first match at or after byte `start`, which is a character's boundary. Shows the byte ranges of the
    /// whole match and of its groups to `found`.
    pub(crate) fn find<T>(
        &self,
        text: &str,
        start: usize,
        found: impl FnOnce(&mut Groups<'_>) -> T,
    ) -> Result<Option<T>, Failure> {
        let mut found = Some(found);
        let mut show = |groups: &mut Groups<'_>| found.take().map(|found| found(groups));
        if text.len() <= SHORT_BYTES_MAX {
            let limit = STEPS_MAX / (text.len() * text.len()).max(30);
            match self.plain.run(text, start, limit as u32, None, &mut show) {
                Err(PCRE2_ERROR_MATCHLIMIT) => {}
                Err(code) => return Err(Failure::of_code(code)),
                Ok(matched) => return Ok(matched.flatten()),
            }
        }
        let watched = self.watched.get_or_init(|| Watched::new(&self.pattern, self.options));
        let watched = match watched.as_ref().map_err(Clone::clone)? {
            Watched::Callouts(code) => code,
            Watched::Positions(code) => return Ok(code.run_by_position(text, start, &mut show)?.flatten()),
        };
        let mut watch = Watch {
            units: 1 + text.len() / BYTES_PER_UNIT,
            stopped: None,
        };
        let result = watched.run(text, start, BACKTRACKS_MAX, Some(&mut watch), &mut show);
        match (result, watch.stopped) {
            (_, Some(error)) => Err(Failure::Stopped(error)),
            (Err(code), None) => Err(Failure::of_code(code)),
            (Ok(matched), None) => Ok(matched.flatten()),
        }
    }
}

impl Watched {
    fn new(pattern: &str, options: u32) -> Result<Self, Failure> {
        // These know where matching began, or end it for all positions: they mean something else at each position alone.
        let is_alike = !pattern.contains("\\G") && !pattern.contains("(*");
        let code = match Code::new(pattern, options | PCRE2_AUTO_CALLOUT) {
            Err(PCRE2_ERROR_PATTERN_TOO_LARGE) if is_alike => {
                Code::new(pattern, options | PCRE2_ANCHORED).map(Self::Positions)
            }
            code => code.map(Self::Callouts),
        };
        code.map_err(Failure::of_code)
    }
}

/// Counts the work of a match.
struct Watch {
    /// Of one item of the pattern.
    units: usize,
    /// Why the match was ended.
    stopped: Option<Error>,
}

/// Called before each item of a watched pattern. A negative answer ends the match.
unsafe extern "C" fn callout(_block: *mut c_void, data: *mut c_void) -> c_int {
    // SAFETY: `Code::run` sets the callout with a pointer to a watch that lives until the match is over, and nobody else uses
    // the watch meanwhile.
    let watch = unsafe { &mut *data.cast::<Watch>() };
    match work(watch.units) {
        Ok(()) => 0,
        Err(error) => {
            watch.stopped = Some(error);
            PCRE2_ERROR_CALLOUT
        }
    }
}

/// A compiled pattern.
struct Code {
    code: *mut pcre2_code_8,
    /// Match data that nobody uses now.
    idle: Mutex<Vec<MatchData>>,
}

// SAFETY: compiled code is not changed after `Code::new`, and may be used by several threads at once (pcre2api,
// "Multithreading"); match data is behind a lock, and used by one thread at a time.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the code was made by `pcre2_compile` and is freed once.
        unsafe { pcre2_code_free_8(self.code) }
    }
}

impl Code {
    /// Errors: PCRE2's code.
    fn new(pattern: &str, options: u32) -> Result<Self, c_int> {
        let (mut error, mut offset) = (0, 0);
        // SAFETY: pointer and length are those of a string; error and offset outlive the call; no compile context.
        let code = unsafe {
            pcre2_compile_8(
                pattern.as_ptr(),
                pattern.len(),
                options,
                &raw mut error,
                &raw mut offset,
                ptr::null_mut(),
            )
        };
        if code.is_null() {
            return Err(error);
        }
        // SAFETY: the code is sound and nobody else has it yet. What cannot be compiled further is interpreted: compiling
        // costs tens of microseconds, worth it for scans, and most expressions are compiled once per query.
        let _ = unsafe { pcre2_jit_compile_8(code, PCRE2_JIT_COMPLETE) };
        Ok(Self {
            code,
            idle: Mutex::default(),
        })
    }

    /// Matches at the first position from `start` on where that is possible, of code that matches nowhere but where it begins.
    fn run_by_position<T>(
        &self,
        text: &str,
        start: usize,
        show: &mut dyn FnMut(&mut Groups<'_>) -> T,
    ) -> Result<Option<T>, Failure> {
        let limit = (STEPS_MAX / text.len().max(1)).max(UNWATCHED_BACKTRACKS_MIN);
        let ends = text.get(start..).into_iter().flat_map(str::char_indices);
        for at in ends.map(|(at, _)| start + at).chain([text.len()]) {
            work(1).map_err(Failure::Stopped)?;
            match self.run(text, at, limit as u32, None, show) {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(code) => return Err(Failure::of_code(code)),
            }
        }
        Ok(None)
    }

    /// Matches; what `show` made of the groups of a match. Errors: PCRE2's code.
    fn run<T>(
        &self,
        text: &str,
        start: usize,
        limit: u32,
        watch: Option<&mut Watch>,
        show: &mut dyn FnMut(&mut Groups<'_>) -> T,
    ) -> Result<Option<T>, c_int> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let data = taken.unwrap_or_else(|| MatchData::new(self));
        // SAFETY: the context is that of `data`, which this function alone has.
        unsafe {
            pcre2_set_match_limit_8(data.context, limit);
            if let Some(watch) = watch {
                pcre2_set_callout_8(data.context, Some(callout), ptr::from_mut(watch).cast());
            }
        }
        // SAFETY: the text is valid UTF-8, so that it need not be checked, and `start` is a boundary within; code and data
        // belong together; the watch lives until this function returns.
        let result = unsafe {
            pcre2_match_8(
                self.code,
                text.as_ptr(),
                text.len(),
                start,
                PCRE2_NO_UTF_CHECK,
                data.data,
                data.context,
            )
        };
        let outcome = match result {
            PCRE2_ERROR_NOMATCH => Ok(None),
            code if code < 0 => Err(code),
            _ => {
                // SAFETY: the vector has as many pairs as are said, and lives as long as `data`.
                let ranges = unsafe {
                    let count = pcre2_get_ovector_count_8(data.data) as usize;
                    std::slice::from_raw_parts(pcre2_get_ovector_pointer_8(data.data), 2 * count)
                };
                // A group that took no part has the largest offset there is.
                let mut groups = ranges
                    .chunks_exact(2)
                    .map(|range| (range[0] != usize::MAX).then_some((range[0], range[1])));
                Ok(Some(show(&mut groups)))
            }
        };
        idle().push(data);
        outcome
    }
}

/// The state that a match needs beside the code.
struct MatchData {
    data: *mut pcre2_match_data_8,
    context: *mut pcre2_match_context_8,
    stack: *mut pcre2_jit_stack_8,
}

impl MatchData {
    fn new(code: &Code) -> Self {
        // SAFETY: null stands for the general context of the library; the code is sound.
        let made = unsafe {
            Self {
                data: pcre2_match_data_create_from_pattern_8(code.code, ptr::null_mut()),
                context: pcre2_match_context_create_8(ptr::null_mut()),
                stack: pcre2_jit_stack_create_8(JIT_STACK_BYTES.0, JIT_STACK_BYTES.1, ptr::null_mut()),
            }
        };
        // As everywhere else, there is no going on without memory.
        assert!(
            !made.data.is_null() && !made.context.is_null() && !made.stack.is_null(),
            "no memory for matching a regular expression"
        );
        // SAFETY: all three were made above; the stack is freed after the context that refers to it.
        unsafe {
            pcre2_set_heap_limit_8(made.context, HEAP_KIB_MAX);
            pcre2_jit_stack_assign_8(made.context, None, made.stack.cast());
        }
        made
    }
}

impl Drop for MatchData {
    fn drop(&mut self) {
        // SAFETY: all three were made by `MatchData::new` and are freed once.
        unsafe {
            pcre2_match_data_free_8(self.data);
            pcre2_match_context_free_8(self.context);
            pcre2_jit_stack_free_8(self.stack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::interrupt::{Interrupt, KillSwitch};
    use nestor_model::{ErrorCode, statement};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    fn first(program: &Program, text: &str) -> Result<Option<(usize, usize)>, Failure> {
        Ok(program.find(text, 0, |groups| groups.next().flatten())?.flatten())
    }

    #[test]
    fn both_programs_agree() {
        for (pattern, text) in [
            ("b+", "abbb"),
            ("(a|b)*c", "ababc"),
            ("^(?:a*a*)*$", "aaaa"),
            ("x(?=y)", "xxy"),
            ("(a)|(b)", "zzb"),
            ("é.", "aéb"),
            ("nothing", "something"),
        ] {
            let program = Program::new(pattern, 0).expect(pattern);
            let short = first(&program, text).expect(pattern);
            // Behind a long text of what does not match.
            let long = format!("{}{text}", "\n".repeat(SHORT_BYTES_MAX));
            let program = Program::new(pattern, PCRE2_MULTILINE).expect(pattern);
            let found = program.find(&long, SHORT_BYTES_MAX, |groups| groups.next().flatten());
            let shifted = short.map(|(from, to)| (from + SHORT_BYTES_MAX, to + SHORT_BYTES_MAX));
            assert_eq!(found.expect(pattern).flatten(), shifted, "{pattern}");
        }
    }

    #[test]
    fn patterns_that_have_no_room_for_callouts_match_long_texts() {
        let letters = "ab".repeat(8 * 1024);
        let program = Program::new(&letters, 0).expect("a pattern");
        let text = format!("é{}{letters}c", "b".repeat(SHORT_BYTES_MAX));
        let from = SHORT_BYTES_MAX + 2;
        assert_eq!(
            first(&program, &text).expect("a match"),
            Some((from, from + letters.len()))
        );
        assert_eq!(first(&program, &text[..text.len() - 2]).expect("no match"), None);
        let empty = Program::new(&format!("(?:{letters})?$"), 0).expect("a pattern");
        let end = (2 * SHORT_BYTES_MAX, 2 * SHORT_BYTES_MAX);
        assert_eq!(first(&empty, &"x".repeat(end.0)).expect("a match"), Some(end));
        let begun = Program::new(&format!("\\G{letters}"), 0).expect("a pattern");
        first(&begun, &text).expect_err("a pattern that knows where matching began");
    }

    #[test]
    fn patterns_that_have_no_room_for_callouts_look_at_the_interrupt() {
        let letters = "ab".repeat(8 * 1024);
        let program = Program::new(&letters, 0).expect("a pattern");
        let late = Interrupt::new(Arc::new(KillSwitch::default()), Some(Instant::now()));
        let stopped = statement::under(&late, None, || first(&program, &"a".repeat(100_000)));
        assert!(matches!(stopped, Err(Failure::Stopped(_))), "{stopped:?}");
    }

    /// Each of these runs for minutes or longer, whatever the match limit is.
    #[test]
    fn matches_that_take_long_look_at_the_interrupt() {
        for (pattern, text) in [
            ("(?:x?){22}x{22}[yz]", "x".repeat(200_000)),
            ("a*a*a*a*a*[bc]", "a".repeat(100_000)),
            ("(?:a*+b|a)*[cd]", "a".repeat(1_000_000)),
            ("(?:.*?,){30}[yz]", "a,".repeat(100_000)),
        ] {
            let program = Program::new(pattern, 0).expect(pattern);
            let kill = Arc::new(KillSwitch::default());
            let interrupt = Interrupt::new(kill, Some(Instant::now() + Duration::from_millis(100)));
            let started = Instant::now();
            let result = statement::under(&interrupt, None, || first(&program, &text));
            match result {
                Err(Failure::Stopped(error)) => assert_eq!(error.code(), ErrorCode::MaxTimeMSExpired, "{pattern}"),
                other => panic!("{pattern}: {other:?}"),
            }
            // Far from the minutes that they would run.
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "{pattern}: {:?}",
                started.elapsed()
            );
        }
    }

    #[test]
    fn short_texts_that_need_many_steps_are_matched_all_the_same() {
        let program = Program::new("^(?:a|aa)+$", 0).expect("valid");
        let text = "a".repeat(24) + "b";
        assert_eq!(first(&program, &text).expect("enough steps"), None);
        let limited = Program::new("^(?:a+)+$", 0).expect("valid");
        assert!(matches!(
            first(&limited, &("a".repeat(64) + "!")),
            Err(Failure::Reason(_))
        ));
    }
}
