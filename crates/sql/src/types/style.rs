//! How the session wants dates to be read.

use std::cell::Cell;

/// The order of three numbers that may each be a year, a month or a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The month first.
    #[default]
    MonthDayYear,
    /// The day first.
    DayMonthYear,
    /// The year first.
    YearMonthDay,
}

impl Order {
    /// The order that a word of `DateStyle` stands for.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "mdy" | "us" => Some(Self::MonthDayYear),
            "dmy" => Some(Self::DayMonthYear),
            "ymd" => Some(Self::YearMonthDay),
            word if word.starts_with("noneuro") => Some(Self::MonthDayYear),
            word if word.starts_with("euro") => Some(Self::DayMonthYear),
            _ => None,
        }
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::MonthDayYear => "MDY",
            Self::DayMonthYear => "DMY",
            Self::YearMonthDay => "YMD",
        }
    }

    /// Lets the thread read dates so, until what it gives is dropped.
    pub fn enter(self) -> Within {
        Within(CURRENT.replace(self))
    }
}

thread_local! {
    static CURRENT: Cell<Order> = const { Cell::new(Order::MonthDayYear) };
}

/// Puts back the order that the thread had before.
pub struct Within(Order);

impl Drop for Within {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// The order that dates are read in.
pub fn order() -> Order {
    CURRENT.get()
}
