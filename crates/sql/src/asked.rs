//! What functions ask of the session that runs them. Functions are given values alone; what they ask for is kept by the thread until
//! the statement has ended, and what they may reach is offered to the thread when they are bound.

use nestor_database::connections::Slot;
use nestor_model::ErrorCode;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// `set_config`: the setting, its value (the first one for `None`), and whether it ends with the transaction.
pub type Setting = (String, Option<String>, bool);

thread_local! {
    static NOTIFIED: RefCell<Vec<(String, String)>> = const { RefCell::new(Vec::new()) };
    static SETTINGS: RefCell<Vec<Setting>> = const { RefCell::new(Vec::new()) };
    static WANTED: Cell<bool> = const { Cell::new(false) };
    static CONNECTIONS: RefCell<Vec<(Arc<Slot>, bool)>> = const { RefCell::new(Vec::new()) };
}

/// Asks for a setting to be changed when the statement has ended.
pub fn set(setting: Setting) {
    SETTINGS.with_borrow_mut(|settings| settings.push(setting));
}

/// Asks for something to be said on a channel.
pub fn notify(channel: String, payload: String) {
    NOTIFIED.with_borrow_mut(|all| all.push((channel, payload)));
}

/// What is to be said, once: channels and texts.
pub fn notified() -> Vec<(String, String)> {
    match NOTIFIED.with_borrow(Vec::is_empty) {
        true => Vec::new(),
        false => NOTIFIED.take(),
    }
}

/// How much was asked for so far: a place to go back to.
pub fn mark() -> (usize, usize) {
    (SETTINGS.with_borrow(Vec::len), NOTIFIED.with_borrow(Vec::len))
}

/// Forgets what was asked for since `mark` gave this.
pub fn back_to((settings, notified): (usize, usize)) {
    SETTINGS.with_borrow_mut(|all| all.truncate(settings));
    NOTIFIED.with_borrow_mut(|all| all.truncate(notified));
}

/// The settings that were asked for behind the first so many.
pub fn settings_behind(count: usize) -> Vec<Setting> {
    SETTINGS.with_borrow(|all| all.get(count..).unwrap_or_default().to_vec())
}

/// Forgets settings behind the first so many that were to end with the transaction: they end with the function that has clauses about them.
pub fn end_local(count: usize, names: &[&str]) {
    let mut at = 0;
    SETTINGS.with_borrow_mut(|all| {
        all.retain(|(name, _, is_local)| {
            at += 1;
            at <= count || !*is_local || !names.contains(&name.as_str())
        });
    });
}

/// The statement is to run within a transaction, and in none but that.
pub fn want_transaction() {
    WANTED.set(true);
}

/// Whether a statement is to run within a transaction, once.
pub fn wants_transaction() -> bool {
    WANTED.replace(false)
}

/// Forgets what a statement that has failed asked for.
pub fn forget() {
    drop((take(), notified()));
}

/// The settings that were asked for, once; nothing is left of them, or of what was offered.
pub fn take() -> Vec<Setting> {
    if CONNECTIONS.with_borrow(|offered| !offered.is_empty()) {
        CONNECTIONS.take();
    }
    SETTINGS.with_borrow_mut(std::mem::take)
}

/// Offers connections, each with whether the session's user may stop what it does.
pub fn offer(connections: Vec<(Arc<Slot>, bool)>) {
    CONNECTIONS.set(connections);
}

/// Stops what a connection does. `None` when there is none of this number, `Some(false)` when the user may not.
pub fn cancel(pid: i64) -> Option<bool> {
    reach(pid, |slot| {
        slot.kill.kill(ErrorCode::Interrupted);
        true
    })
}

/// Ends a connection, and what it does before. `None` when there is none of this number that speaks SQL, `Some(false)` when the user may not.
pub fn terminate(pid: i64) -> Option<bool> {
    reach(pid, |slot| {
        let listens = slot.ending.ask();
        if listens {
            slot.kill.kill(ErrorCode::Interrupted);
        }
        listens
    })
}

/// Does something to a connection that was offered, if the user may; `None` when it is not there, or `act` says that it cannot be done to it.
fn reach(pid: i64, act: impl FnOnce(&Slot) -> bool) -> Option<bool> {
    CONNECTIONS.with_borrow(|offered| {
        let (slot, allowed) = offered.iter().find(|(slot, _)| slot.id == pid)?;
        (!allowed || act(slot)).then_some(*allowed)
    })
}
