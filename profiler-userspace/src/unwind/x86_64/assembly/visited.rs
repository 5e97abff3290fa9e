//! Which instructions were reached, and in which state.
//!
//! In: places, lengths and numbers of states. Out: the same again, and back as they were before a mark. Memory is in
//! proportion to the code that was reached.

/// How many places share a page.
const PAGE: usize = 1 << 10;

/// An instruction that was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reached {
    /// The number of the state before it, plus its length in bytes in the highest four bits.
    packed: u32,
}

impl Reached {
    /// The number of the state before it.
    pub(super) const fn state(self) -> u32 {
        self.packed & 0x0fff_ffff
    }

    /// Its length in bytes.
    pub(super) const fn bytes(self) -> u32 {
        self.packed >> 28
    }
}

/// All that were reached.
#[derive(Debug)]
pub(super) struct Visited {
    pages: Vec<Option<Box<[Reached; PAGE]>>>,
    /// The entry before each change.
    journal: Vec<(u32, Reached)>,
}

impl Visited {
    /// None of so many places.
    pub(super) fn new(places: usize) -> Self {
        let mut pages = Vec::new();
        pages.resize_with(places.div_ceil(PAGE), || None);
        Self {
            pages,
            journal: Vec::new(),
        }
    }

    /// The entry of a place; none if it was not reached.
    pub(super) fn at(&self, place: u32) -> Option<Reached> {
        let place = place as usize;
        let page = self.pages.get(place / PAGE)?.as_ref()?;
        Some(page[place % PAGE]).filter(|reached| reached.packed != 0)
    }

    /// An instruction of 1 to 15 bytes is reached in this state.
    pub(super) fn set(&mut self, place: u32, state: u32, bytes: usize) {
        let packed = state | (bytes as u32) << 28;
        self.put(place, Reached { packed });
    }

    fn put(&mut self, place: u32, reached: Reached) {
        let at = place as usize;
        let Some(page) = self.pages.get_mut(at / PAGE) else {
            return;
        };
        let page = page.get_or_insert_with(|| Box::new([Reached::default(); PAGE]));
        self.journal.push((place, page[at % PAGE]));
        page[at % PAGE] = reached;
    }

    /// A mark to go back to.
    pub(super) const fn mark(&self) -> usize {
        self.journal.len()
    }

    /// Undoes all changes since a mark.
    pub(super) fn undo(&mut self, mark: usize) {
        while self.journal.len() > mark
            && let Some((place, before)) = self.journal.pop()
        {
            let at = place as usize;
            if let Some(Some(page)) = self.pages.get_mut(at / PAGE) {
                page[at % PAGE] = before;
            }
        }
    }

    /// Gives this state to all that changed since a mark.
    pub(super) fn spoil(&mut self, mark: usize, state: u32) {
        for change in mark..self.journal.len() {
            let place = self.journal[change].0;
            if let Some(reached) = self.at(place) {
                self.set(place, state, reached.bytes() as usize);
            }
        }
    }

    /// Forgets how to go back.
    pub(super) fn commit(&mut self) {
        self.journal.clear();
    }

    /// All that were reached, by place.
    pub(super) fn each(&self) -> impl Iterator<Item = (u32, Reached)> {
        let pages = self.pages.iter().enumerate();
        pages
            .filter_map(|(number, page)| Some((number, page.as_ref()?)))
            .flat_map(|(number, page)| {
                let first = number * PAGE;
                page.iter()
                    .enumerate()
                    .filter(|(_, reached)| reached.packed != 0)
                    .map(move |(into, &reached)| ((first + into) as u32, reached))
            })
    }
}
