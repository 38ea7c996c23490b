//! Reference evaluators: the plainest code that gives the right answer, on owned values, without plans,
//! bytes or caches.

pub mod matching;
pub mod projecting;
pub mod text;
pub mod update;
