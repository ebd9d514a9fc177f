//! The search itself.

use super::store::{Kept, Store};
use super::{Edges, Kind, World};

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// More states than this end it, and the space is not whole.
    pub states_max: usize,
    /// Whether the ends are looked for.
    pub liveness: Liveness,
    /// What ends it.
    pub until: Until,
}

/// See [`Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// From every state an end must be in reach.
    Checked,
    /// Only invariants are looked at.
    Unchecked,
}

/// See [`Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Every state was visited.
    Whole,
    /// The first state that breaks this invariant; others are not looked at.
    Broken(&'static str),
}

/// What a search saw.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Different states.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// The length of the longest shortest trace.
    pub depth: usize,
    /// Whether that was all of them.
    pub whole: bool,
    /// The first trace to each thing that must not be.
    pub violations: Vec<Violation>,
}

/// A trace to a state that must not be.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which invariant, or [`NO_END`].
    pub name: &'static str,
    /// The steps that lead there.
    pub trace: Vec<String>,
    /// The state in words.
    pub state: String,
}

/// The name under which a state without a way to any end is reported.
pub const NO_END: &str = "no end is in reach although faults have stopped";

const NOBODY: u32 = u32::MAX;

/// Visits every state of `world`, as far as `limits` allow.
pub fn search<W: World>(world: &W, limits: &Limits) -> Seen {
    let mut visit = Visit::begin(world, limits);
    while visit.next < visit.store.count() && visit.may_go_on() {
        visit.expand();
    }
    visit.end()
}

struct Visit<'a, W: World> {
    world: &'a W,
    limits: &'a Limits,
    store: Store<W::State>,
    /// Who found each state.
    parents: Vec<u32>,
    /// Protocol steps, backwards: to, from.
    back: Vec<(u32, u32)>,
    broken: Vec<(&'static str, u32)>,
    /// States that break something; what lies behind them is not looked at.
    dead_ends: Vec<u32>,
    edges: Edges<W::State>,
    next: usize,
    steps: usize,
    depth: usize,
    depth_ends: usize,
}

impl<'a, W: World> Visit<'a, W> {
    fn begin(world: &'a W, limits: &'a Limits) -> Visit<'a, W> {
        let mut store = Store::new();
        for state in world.starts() {
            store.keep(state);
        }
        Visit {
            world,
            limits,
            parents: vec![NOBODY; store.count()],
            depth_ends: store.count(),
            store,
            back: Vec::new(),
            broken: Vec::new(),
            dead_ends: Vec::new(),
            edges: Edges(Vec::new()),
            next: 0,
            steps: 0,
            depth: 0,
        }
    }

    fn may_go_on(&self) -> bool {
        let enough = match self.limits.until {
            Until::Whole => false,
            Until::Broken(_) => !self.broken.is_empty(),
        };
        !enough && self.store.count() <= self.limits.states_max
    }

    fn expand(&mut self) {
        if self.next == self.depth_ends {
            self.depth += 1;
            self.depth_ends = self.store.count();
        }
        let number = u32::try_from(self.next).expect("the store numbers states with 32 bits");
        self.next += 1;
        let state = self.store.get(number).clone();
        if self.breaks(number, &state) {
            return;
        }
        let mut edges = std::mem::replace(&mut self.edges, Edges(Vec::new()));
        self.world.next(&state, &mut edges);
        for edge in edges.0.drain(..) {
            self.steps += 1;
            let to = match self.store.keep(edge.to) {
                Kept::Known(to) => to,
                Kept::New(to) => {
                    self.parents.push(number);
                    to
                }
            };
            if self.limits.liveness == Liveness::Checked && edge.kind == Kind::Protocol && to != number {
                self.back.push((to, number));
            }
        }
        self.edges = edges;
    }

    fn breaks(&mut self, number: u32, state: &W::State) -> bool {
        let mut names = Vec::new();
        self.world.broken(state, &mut names);
        match self.limits.until {
            Until::Whole => {}
            Until::Broken(wanted) => names.retain(|name| *name == wanted),
        }
        for name in &names {
            if !self.broken.iter().any(|(known, _)| known == name) {
                self.broken.push((name, number));
            }
        }
        if !names.is_empty() {
            self.dead_ends.push(number);
        }
        !names.is_empty()
    }

    fn end(mut self) -> Seen {
        let whole = self.next == self.store.count();
        if whole
            && self.limits.liveness == Liveness::Checked
            && let Some(stuck) = self.first_stuck()
        {
            self.broken.push((NO_END, stuck));
        }
        let violations = self.broken.iter().map(|(name, number)| self.violation(name, *number)).collect();
        Seen { states: self.store.count(), steps: self.steps, depth: self.depth, whole, violations }
    }

    /// The first state found from which no protocol steps lead to an end.
    fn first_stuck(&mut self) -> Option<u32> {
        self.back.sort_unstable();
        let numbers = 0..u32::try_from(self.store.count()).expect("the store numbers states with 32 bits");
        let mut ends = vec![false; self.store.count()];
        let mut reached: Vec<u32> =
            numbers.clone().filter(|number| self.world.is_end(self.store.get(*number))).collect();
        reached.extend(&self.dead_ends);
        reached.iter().for_each(|number| ends[*number as usize] = true);
        while let Some(to) = reached.pop() {
            let first = self.back.partition_point(|edge| edge.0 < to);
            for (_, from) in self.back[first..].iter().take_while(|edge| edge.0 == to) {
                if !std::mem::replace(&mut ends[*from as usize], true) {
                    reached.push(*from);
                }
            }
        }
        numbers.into_iter().find(|number| !ends[*number as usize])
    }

    fn violation(&self, name: &'static str, number: u32) -> Violation {
        let mut way = vec![number];
        let mut last = number;
        while self.parents[last as usize] != NOBODY {
            last = self.parents[last as usize];
            way.push(last);
        }
        way.reverse();
        let trace = way.windows(2).map(|pair| self.step_between(pair[0], pair[1])).collect();
        Violation { name, trace, state: self.world.show(self.store.get(number)) }
    }

    fn step_between(&self, from: u32, to: u32) -> String {
        let mut edges = Edges(Vec::new());
        self.world.next(self.store.get(from), &mut edges);
        let edge = edges.0.iter().find(|edge| edge.to == *self.store.get(to));
        edge.expect("a state's parent has a step to it").step.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::Step;

    /// Counts up by one or two; may fall into a hole at 7, from which only a fault leads out.
    struct Counter {
        top: u8,
        forbidden: Option<u8>,
        hole: bool,
    }

    impl World for Counter {
        type State = u8;
        fn starts(&self) -> Vec<u8> {
            vec![0]
        }
        fn next(&self, at: &u8, edges: &mut Edges<u8>) {
            if self.hole && *at == 7 {
                edges.fault(Step::of("climb out"), 8);
                return;
            }
            for (words, by) in [("one", 1), ("two", 2)] {
                if at + by <= self.top {
                    edges.protocol(Step::of(words), at + by);
                }
            }
        }
        fn broken(&self, at: &u8, names: &mut Vec<&'static str>) {
            names.extend((Some(*at) == self.forbidden).then_some("forbidden"));
        }
        fn is_end(&self, at: &u8) -> bool {
            *at == self.top
        }
        fn show(&self, at: &u8) -> String {
            format!("at {at}")
        }
    }

    const WHOLE: Limits = Limits { states_max: 1_000, liveness: Liveness::Checked, until: Until::Whole };

    #[test]
    fn a_whole_space_is_counted_once_and_its_ends_are_in_reach() {
        let seen = search(&Counter { top: 10, forbidden: None, hole: false }, &WHOLE);
        assert_eq!((seen.states, seen.steps, seen.depth, seen.whole), (11, 19, 5, true));
        assert!(seen.violations.is_empty());
    }

    #[test]
    fn the_trace_to_a_broken_invariant_is_a_shortest_one() {
        let seen = search(&Counter { top: 10, forbidden: Some(5), hole: false }, &WHOLE);
        let [found] = seen.violations.as_slice() else { panic!("one invariant is broken") };
        assert_eq!((found.name, found.trace.len(), found.state.as_str()), ("forbidden", 3, "at 5"));
        assert_eq!(found.trace.iter().filter(|step| *step == "two").count(), 2);
    }

    #[test]
    fn a_state_that_only_a_fault_leads_out_of_has_no_end_in_reach() {
        let seen = search(&Counter { top: 10, forbidden: None, hole: true }, &WHOLE);
        let [found] = seen.violations.as_slice() else { panic!("one state is stuck") };
        assert_eq!((found.name, found.state.as_str()), (NO_END, "at 7"));
        let unchecked = Limits { liveness: Liveness::Unchecked, ..WHOLE };
        assert!(search(&Counter { top: 10, forbidden: None, hole: true }, &unchecked).violations.is_empty());
    }

    #[test]
    fn a_search_that_hits_its_bound_says_that_the_space_is_not_whole() {
        let bound = Limits { states_max: 5, ..WHOLE };
        let seen = search(&Counter { top: 10, forbidden: None, hole: false }, &bound);
        assert!(!seen.whole && seen.states <= 8);
        let first = Limits { until: Until::Broken("forbidden"), ..WHOLE };
        let seen = search(&Counter { top: 200, forbidden: Some(3), hole: false }, &first);
        assert!(!seen.whole && seen.violations.len() == 1 && seen.states < 20);
    }
}
