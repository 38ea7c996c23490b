//! What settings of a session say of plans: which ways there are to a result, and what they cost.

/// Inputs of joins that are put in order together at most; further ones are joins of their own.
pub const INPUTS_MAX: usize = 128;

/// Which ways a plan may take where there is another one, and how statements run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switches {
    /// Tables may be read as a whole.
    pub seqscan: bool,
    /// Rows may be found by indexes.
    pub indexscan: bool,
    /// Entries of indexes may be read in place of documents.
    pub indexonlyscan: bool,
    /// Joins by hash tables.
    pub hashjoin: bool,
    /// Joins that look for the rows of one side for each row, or some rows, of the other one.
    pub nestloop: bool,
    /// Partitions that have no rows which are wanted are passed over.
    pub pruning: bool,
    /// Sorts where an index has the order.
    pub sort: bool,
    /// What a row costs that an index finds, in what it costs by default.
    pub found_cost: f64,
    /// Inputs of inner joins that are put in order together at most.
    pub ordered_inputs: usize,
    /// Prepared statements are planned anew each time.
    pub plans_anew: bool,
    /// Bytes that an operator may hold.
    pub operator_bytes: usize,
    /// Bytes that building an index may hold, if that was said.
    pub build_bytes: Option<usize>,
    /// Statements may have a second thread.
    pub has_helpers: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            seqscan: true,
            indexscan: true,
            indexonlyscan: true,
            hashjoin: true,
            nestloop: true,
            pruning: true,
            sort: true,
            found_cost: 1.0,
            ordered_inputs: INPUTS_MAX,
            plans_anew: false,
            operator_bytes: usize::MAX,
            build_bytes: None,
            has_helpers: true,
        }
    }
}

impl Switches {
    /// Whether joins look rows up by indexes.
    pub fn looks_up(&self) -> bool {
        self.indexscan && self.nestloop
    }

    /// Whether they do so whatever it costs.
    pub fn always_looks_up(&self) -> bool {
        self.looks_up() && !(self.hashjoin && self.seqscan)
    }
}
