//! The known servers, as data ([`Table`]), where they belong ([`roots`]) and where their programs are ([`resolve`]).

mod defaults;
mod fetch;
mod install;
mod resolve;
mod roots;
mod scan;
mod table;

pub use fetch::install;
pub use install::{Install, InstallStep};
pub use resolve::{Found, NotFound, Resolver};
pub use roots::{RootFound, find_root};
pub use table::{Group, Hoist, Readiness, Role, ServerOverride, ServerSpec, Settle, Table, TableError};

pub(crate) use defaults::{initialization_options, settings};
pub(crate) use roots::{any_files, is_foreign, unindexed};
pub(crate) use scan::Scan;
