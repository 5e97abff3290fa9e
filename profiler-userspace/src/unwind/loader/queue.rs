//! Orders for tables, on their way to the threads that make them.
//!
//! In: open files, and how soon their tables are wanted. Out: one order at a time, the urgent ones first.
//! Never: an urgent order behind one that is not, since one of the threads takes no others.

use super::worker::lock;
use profiler_common::abi::CodeKey;
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// How soon a table is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A walk has come there, or may at any moment.
    Now,
    /// Before a walk comes there.
    Later,
}

/// A file whose code is to be published.
pub(crate) struct Order {
    pub(crate) key: CodeKey,
    pub(crate) file: File,
}

/// Where orders lie until a thread takes them.
pub(crate) struct Desk {
    orders: Mutex<Orders>,
    changed: Condvar,
    idle: Arc<Notify>,
}

#[derive(Default)]
struct Orders {
    urgent: VecDeque<Order>,
    usual: VecDeque<Order>,
    /// Those that were taken and are not done.
    taken: usize,
    /// Whether somebody wants to know when there is nothing left to do.
    tell: bool,
    /// Whether a thread has gone, by a defect: what it had taken will never be done.
    deserted: bool,
}

impl Orders {
    fn are_done(&self) -> bool {
        self.urgent.is_empty() && self.usual.is_empty() && self.taken == 0
    }

    fn take(&mut self, least: Need) -> Option<(Need, Order)> {
        let urgent = self.urgent.pop_front().map(|order| (Need::Now, order));
        urgent.or_else(|| {
            let usual = (least == Need::Later).then(|| self.usual.pop_front())?;
            usual.map(|order| (Need::Later, order))
        })
    }
}

impl Desk {
    /// An empty desk, which tells `idle` when it is [asked to](Self::tell_when_idle).
    pub(crate) fn new(idle: Arc<Notify>) -> Self {
        Self {
            orders: Mutex::default(),
            changed: Condvar::new(),
            idle,
        }
    }

    /// Puts an order behind the others of its kind.
    pub(crate) fn put(&self, need: Need, order: Order) {
        let mut orders = lock(&self.orders);
        match need {
            Need::Now => orders.urgent.push_back(order),
            Need::Later => orders.usual.push_back(order),
        }
        drop(orders);
        self.changed.notify_all();
    }

    /// Waits for an order that is wanted no later than `least`, and takes it.
    pub(crate) fn take(&self, least: Need) -> Taken<'_> {
        let mut orders = lock(&self.orders);
        loop {
            if let Some((need, order)) = orders.take(least) {
                orders.taken += 1;
                return Taken {
                    desk: self,
                    need,
                    order,
                };
            }
            orders = self.wait(orders);
        }
    }

    /// Waits until all orders are done.
    pub(crate) fn wait_until_idle(&self) {
        let mut orders = lock(&self.orders);
        while !orders.are_done() && !orders.deserted {
            orders = self.wait(orders);
        }
    }

    /// Asks for a notice as soon as all orders are done.
    pub(crate) fn tell_when_idle(&self) {
        let mut orders = lock(&self.orders);
        orders.tell = true;
        self.tell(&mut orders);
    }

    fn tell(&self, orders: &mut Orders) {
        if orders.are_done() && std::mem::take(&mut orders.tell) {
            self.idle.notify_one();
        }
    }

    fn wait<'a>(&self, orders: MutexGuard<'a, Orders>) -> MutexGuard<'a, Orders> {
        self.changed
            .wait(orders)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// An order that a thread is at. It is done when this goes.
pub(crate) struct Taken<'a> {
    desk: &'a Desk,
    /// How soon it is wanted.
    pub(crate) need: Need,
    order: Order,
}

impl Deref for Taken<'_> {
    type Target = Order;

    fn deref(&self) -> &Order {
        &self.order
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut orders = lock(&self.desk.orders);
        orders.taken -= 1;
        orders.deserted |= std::thread::panicking();
        self.desk.tell(&mut orders);
        drop(orders);
        self.desk.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn order(inode: u64) -> Order {
        Order {
            key: CodeKey {
                device: 1,
                inode,
                modified: 1,
            },
            file: File::open("/dev/null").unwrap(),
        }
    }

    fn was_told(idle: &Notify) -> bool {
        let told = pin!(idle.notified());
        matches!(
            told.poll(&mut Context::from_waker(Waker::noop())),
            Poll::Ready(())
        )
    }

    #[test]
    fn urgent_orders_come_first_and_have_a_thread_that_takes_no_others() {
        let desk = Desk::new(Arc::default());
        desk.put(Need::Later, order(1));
        desk.put(Need::Now, order(2));
        desk.put(Need::Now, order(3));
        let first = desk.take(Need::Later);
        assert_eq!((first.need, first.key.inode), (Need::Now, 2));
        assert_eq!(desk.take(Need::Now).key.inode, 3);
        let waits = std::thread::scope(|scope| {
            let thread = scope.spawn(|| desk.take(Need::Now).key.inode);
            assert_eq!(desk.take(Need::Later).key.inode, 1);
            desk.put(Need::Now, order(4));
            thread.join().unwrap()
        });
        assert_eq!(waits, 4);
    }

    #[test]
    fn is_idle_when_what_was_taken_is_done() {
        let idle = Arc::new(Notify::new());
        let desk = Desk::new(Arc::clone(&idle));
        desk.wait_until_idle();
        desk.put(Need::Later, order(1));
        desk.tell_when_idle();
        let taken = desk.take(Need::Later);
        assert!(!was_told(&idle));
        drop(taken);
        assert!(was_told(&idle));
        desk.wait_until_idle();
        desk.put(Need::Later, order(1));
        drop(desk.take(Need::Later));
        assert!(!was_told(&idle), "nobody asked again");
        desk.tell_when_idle();
        assert!(was_told(&idle), "there was nothing to do");
    }

    #[test]
    fn nobody_waits_for_a_thread_that_has_gone() {
        let desk = Desk::new(Arc::default());
        desk.put(Need::Later, order(1));
        desk.put(Need::Later, order(2));
        let gone = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let _taken = desk.take(Need::Later);
                // Without a word on the tests' output.
                std::panic::resume_unwind(Box::new(()));
            });
            thread.join()
        });
        assert!(gone.is_err());
        desk.wait_until_idle();
    }
}
