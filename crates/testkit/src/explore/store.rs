//! Where visited states are kept: each once, in the order they were found.

use std::hash::{Hash, Hasher};

const EMPTY: u32 = u32::MAX;

/// States by the number of their finding.
pub(super) struct Store<S> {
    states: Vec<S>,
    places: Vec<u32>,
}

/// Whether a state was new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    New(u32),
    Known(u32),
}

impl<S: Eq + Hash> Store<S> {
    pub(super) fn new() -> Store<S> {
        Store { states: Vec::new(), places: vec![EMPTY; 1 << 12] }
    }

    pub(super) fn keep(&mut self, state: S) -> Kept {
        if self.states.len() * 10 >= self.places.len() * 7 {
            self.grow();
        }
        let place = self.place_of(&state);
        let found = self.places[place];
        if found != EMPTY {
            return Kept::Known(found);
        }
        let number = u32::try_from(self.states.len()).expect("the search stops long before 2^32 states");
        self.places[place] = number;
        self.states.push(state);
        Kept::New(number)
    }

    pub(super) fn get(&self, number: u32) -> &S {
        &self.states[number as usize]
    }

    pub(super) fn count(&self) -> usize {
        self.states.len()
    }

    /// The state's place, or the empty one where it belongs.
    fn place_of(&self, state: &S) -> usize {
        let mask = self.places.len() - 1;
        let mut place = spread(state) & mask;
        while self.places[place] != EMPTY && self.states[self.places[place] as usize] != *state {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let size = self.places.len() * 2;
        let mask = size - 1;
        let mut places = vec![EMPTY; size];
        for (number, state) in (0_u32..).zip(&self.states) {
            let mut place = spread(state) & mask;
            while places[place] != EMPTY {
                place = (place + 1) & mask;
            }
            places[place] = number;
        }
        self.places = places;
    }
}

fn spread<S: Hash>(state: &S) -> usize {
    let mut mixer = Mixer(0);
    state.hash(&mut mixer);
    usize::try_from(mixer.finish()).expect("the machines of this project have 64 bits")
}

/// Multiplies and rotates: states are a few dozen small numbers, and nobody chooses them to collide.
struct Mixer(u64);

impl Mixer {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        let folded = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        folded ^ (folded >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.mix(u64::from(byte));
    }

    fn write_isize(&mut self, number: isize) {
        self.mix(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_is_kept_once_under_the_number_of_its_finding() {
        let mut store = Store::new();
        for number in 0..20_000_u32 {
            assert_eq!(store.keep(number.wrapping_mul(2_654_435_761)), Kept::New(number));
        }
        for number in 0..20_000_u32 {
            let state = number.wrapping_mul(2_654_435_761);
            assert_eq!(store.keep(state), Kept::Known(number));
            assert_eq!(*store.get(number), state);
        }
        assert_eq!(store.count(), 20_000);
    }

    #[test]
    fn states_that_fall_on_one_place_are_told_apart() {
        #[derive(PartialEq, Eq)]
        struct Alike(u32);
        impl Hash for Alike {
            fn hash<H: Hasher>(&self, state: &mut H) {
                state.write_u8(0);
            }
        }
        let mut store = Store::new();
        for number in 0..100 {
            assert_eq!(store.keep(Alike(number)), Kept::New(number));
        }
        assert_eq!(store.keep(Alike(7)), Kept::Known(7));
    }
}
