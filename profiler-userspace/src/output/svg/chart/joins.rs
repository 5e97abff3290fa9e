//! Which callees go on from one window to the next, and in which order they therefore stand.
//!
//! In: for each window that a frame is in, what it is divided into. Out: an order for each. What goes on stands at the
//! right end of one window and at the left end of the next, so only what fills a window can go on at both of its ends.
//! Of all ways to choose, this takes one in which what is joined is widest; what is not joined is in the order of names.

/// More candidates than this at one border are not compared: narrow ones change little.
const MAX_CANDIDATES: usize = 8;

/// Part of a frame in a window: a callee, or what the frame did itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Which callee; none is the frame itself.
    pub(super) node: Option<u32>,
    /// Where it is in its window.
    pub(super) place: usize,
    /// Weight.
    pub(super) weight: u64,
    /// The same in time.
    pub(super) width: u64,
}

/// How the items of a window stand, from the left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) items: Vec<usize>,
    /// Whether the last of them is the first of the next window.
    pub(super) goes_on: bool,
}

/// Item that may go on across a border: its place among the items on either side, and how wide both are together.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    left: usize,
    right: usize,
    width: u64,
}

/// Choice at a border, if there is one: the widest sum so far, and the choice at the border before.
#[derive(Clone, Copy)]
struct Best {
    sum: u64,
    before: usize,
}

/// The orders of windows that follow each other. Items are sorted by node, that of the frame itself last; `goes_on` says
/// whether there is no gap behind a window.
pub(super) fn order(windows: &[Vec<Item>], goes_on: impl Fn(usize) -> bool) -> Vec<Order> {
    let borders: Vec<Vec<Candidate>> = windows
        .windows(2)
        .enumerate()
        .map(|(at, pair)| match goes_on(at) {
            true => candidates(&pair[0], &pair[1]),
            false => Vec::new(),
        })
        .collect();
    let chosen = choose(windows, &borders);
    let at = |border: usize| chosen.get(border).copied().flatten();
    let stand = |(window, items): (usize, &Vec<Item>)| {
        let first = window
            .checked_sub(1)
            .and_then(at)
            .map(|joined| joined.right);
        let last = at(window).map(|joined| joined.left);
        let is_between = |item: &usize| Some(*item) != first && Some(*item) != last;
        let between = (0..items.len()).filter(is_between);
        let last_alone = last.filter(|_| last != first);
        Order {
            items: first.into_iter().chain(between).chain(last_alone).collect(),
            goes_on: last.is_some(),
        }
    };
    windows.iter().enumerate().map(stand).collect()
}

/// The callees that two neighbours have in common, the widest first.
fn candidates(left: &[Item], right: &[Item]) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut behind = 0;
    for (place, item) in left.iter().enumerate() {
        let Some(node) = item.node else { continue };
        let is_before = |other: &Item| other.node.is_some_and(|other| other < node);
        behind += right[behind..]
            .iter()
            .take_while(|other| is_before(other))
            .count();
        if let Some(same) = right.get(behind).filter(|other| other.node == Some(node)) {
            found.push(Candidate {
                left: place,
                right: behind,
                width: item.width.saturating_add(same.width),
            });
        }
    }
    found.sort_by_key(|candidate| std::cmp::Reverse(candidate.width));
    found.truncate(MAX_CANDIDATES);
    found
}

/// Joins at each border. Choices at one border depend on that before alone, so the best ones are found from left to
/// right, and read from right to left.
fn choose(windows: &[Vec<Item>], borders: &[Vec<Candidate>]) -> Vec<Option<Candidate>> {
    // For each border the best for each candidate, and last for none.
    let mut best: Vec<Vec<Best>> = Vec::with_capacity(borders.len());
    for (border, own) in borders.iter().enumerate() {
        let fills = windows[border].len() == 1;
        let before: &[Candidate] = match border.checked_sub(1) {
            Some(before) => &borders[before],
            None => &[],
        };
        let sums: &[Best] = best.last().map_or(&[], Vec::as_slice);
        let from = |is_possible: &dyn Fn(&Candidate) -> bool| {
            let nothing = before.len();
            let possible = (0..nothing).filter(|&place| is_possible(&before[place]));
            // The first of the best, so that the choice is the same every time.
            let all = possible.chain([nothing]);
            let sum = |place: usize| sums.get(place).map_or(0, |best| best.sum);
            let widest = all.max_by_key(|&place| (sum(place), std::cmp::Reverse(place)));
            let place = widest.unwrap_or(nothing);
            (sum(place), place)
        };
        let mut row: Vec<Best> = own
            .iter()
            .map(|candidate| {
                let (sum, place) = from(&|other| fills || other.right != candidate.left);
                Best {
                    sum: sum.saturating_add(candidate.width),
                    before: place,
                }
            })
            .collect();
        let (sum, before) = from(&|_| true);
        row.push(Best { sum, before });
        best.push(row);
    }
    let mut chosen = vec![None; borders.len()];
    let last = best.last().map_or(&[][..], Vec::as_slice);
    let mut place = (0..last.len())
        .max_by_key(|&place| (last[place].sum, std::cmp::Reverse(place)))
        .unwrap_or(0);
    for border in (0..borders.len()).rev() {
        chosen[border] = borders[border].get(place).copied();
        place = best[border][place].before;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Callees by number, each with its width.
    fn window(items: &[(u32, u64)]) -> Vec<Item> {
        let item = |(place, &(node, width)): (usize, &(u32, u64))| Item {
            node: Some(node),
            place,
            weight: width,
            width,
        };
        items.iter().enumerate().map(item).collect()
    }

    fn orders(windows: &[Vec<Item>]) -> Vec<(Vec<u32>, bool)> {
        let orders = order(windows, |_| true);
        let named = |(order, items): (&Order, &Vec<Item>)| {
            let nodes = order.items.iter().filter_map(|&item| items[item].node);
            (nodes.collect(), order.goes_on)
        };
        orders.iter().zip(windows).map(named).collect()
    }

    #[test]
    fn what_fills_windows_goes_on_through_all_of_them() {
        let windows = [window(&[(1, 10)]), window(&[(1, 10)]), window(&[(1, 10)])];
        let expected = [(vec![1], true), (vec![1], true), (vec![1], false)];
        assert_eq!(orders(&windows), expected);
    }

    #[test]
    fn of_several_the_widest_are_joined_in_turn() {
        let both = || window(&[(1, 6), (2, 4)]);
        // 1 goes on from the first to the second, then there is only 2 for the left end of the third.
        let expected = [
            (vec![2, 1], true),
            (vec![1, 2], true),
            (vec![2, 1], true),
            (vec![1, 2], false),
        ];
        assert_eq!(orders(&[both(), both(), both(), both()]), expected);
    }

    #[test]
    fn a_gap_and_a_stranger_end_what_goes_on() {
        let windows = [window(&[(1, 10)]), window(&[(1, 10)])];
        let apart = order(&windows, |_| false);
        assert!(apart.iter().all(|order| !order.goes_on));
        let others = [window(&[(1, 10)]), window(&[(2, 10)])];
        assert_eq!(orders(&others), [(vec![1], false), (vec![2], false)]);
    }

    #[test]
    fn what_a_frame_did_itself_stands_in_the_way() {
        let mut first = window(&[(1, 9)]);
        first.push(Item {
            node: None,
            place: 9,
            weight: 1,
            width: 1,
        });
        let windows = [window(&[(1, 10)]), first, window(&[(1, 10)])];
        let orders = order(&windows, |_| true);
        let joined = orders.iter().filter(|order| order.goes_on).count();
        assert_eq!(joined, 1);
    }
}
