//! The loader of unwind tables, beside the event loop.
//!
//! In: the kernel's tables. Out: the loader, and a wake-up when a file has a runtime that none had before.

use crate::kernel::{self, Kernel};
use crate::unwind::loader::TableLoader;
use anyhow::{Context as _, Result};
use std::sync::Arc;
use tokio::sync::Notify;

/// Loads the tables of what is sampled.
pub(super) struct Tables {
    pub(super) loader: TableLoader<kernel::Tables>,
    new_runtime: Arc<Notify>,
}

impl Tables {
    /// Starts the loader.
    pub(super) fn start(mut tables: kernel::Tables, kernel: &mut Kernel) -> Result<Self> {
        let new_runtime = Arc::new(Notify::new());
        tables.on_new_runtime({
            let new_runtime = Arc::clone(&new_runtime);
            move || new_runtime.notify_one()
        });
        let loader = TableLoader::start(tables, kernel)
            .context("cannot start the thread that loads unwind tables")?;
        Ok(Self {
            loader,
            new_runtime,
        })
    }

    /// Returns when a file has a runtime that none had before.
    pub(super) async fn has_new_runtime(&self) {
        self.new_runtime.notified().await;
    }
}
