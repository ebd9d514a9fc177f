//! A small deterministic generator: one seed on the command line replays a whole run.

/// SplitMix64: every seed gives a full-period sequence, also 0, and the state is one word.
#[derive(Clone, Debug)]
pub struct Seeded {
    state: u64,
}

impl Seeded {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..bound`; the tiny bias of the remainder does not matter to test data.
    ///
    /// # Panics
    /// When `bound` is 0: there is no such number.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below 0");
        self.next_u64() % bound
    }

    /// A place in a slice of `len` items.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("a remainder of a usize fits a usize")
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Fills `bytes` from the sequence.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Seeded;

    #[test]
    fn one_seed_gives_one_sequence_and_another_seed_another() {
        let take = |seed| {
            let mut seeded = Seeded::new(seed);
            [seeded.next_u64(), seeded.next_u64(), seeded.next_u64()]
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
        // The published first output for seed 0: the sequence is SplitMix64's, on every machine.
        assert_eq!(take(0)[0], 0xE220_A839_7B1D_CDAF);
    }

    #[test]
    fn filled_bytes_continue_the_sequence_also_when_they_end_inside_a_word() {
        let mut bytes = [0_u8; 11];
        Seeded::new(0).fill(&mut bytes);
        assert_eq!(bytes[..8], 0xE220_A839_7B1D_CDAF_u64.to_le_bytes());
        assert_ne!(bytes[8..], [0, 0, 0]);
    }
}
