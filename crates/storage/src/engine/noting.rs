//! Write sets that note what is read through them, so that their commits build on it.

use super::Engine;
use crate::WriteSet;

impl Engine {
    /// A write set on the newest state that notes what is read through it, as those of serializable transactions do, for a commit
    /// that has to build on it.
    pub fn begin_noting(&self) -> WriteSet {
        let sequencer = self.inner.lock_sequencer();
        let mut ws = self.begin();
        ws.reads = Some(sequencer.open_reads(ws.snapshot.state.seq));
        ws
    }

    /// Brings a transaction's write set, whose keys are claimed, to the newest state, and notes what is read through it from then on.
    pub fn refresh_noting(&self, ws: &mut WriteSet) {
        let sequencer = self.inner.lock_sequencer();
        ws.refresh(self.snapshot());
        if ws.reads.is_none() {
            ws.reads = Some(sequencer.open_reads_of(ws.snapshot.state.seq));
        }
    }
}
