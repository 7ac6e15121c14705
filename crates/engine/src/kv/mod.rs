//! The KV pool: which block belongs to whom, and what freed blocks still hold.
//!
//! | module | holds |
//! | --- | --- |
//! | [`pool`] | [`BlockPool`], the blocks, their free list and their owners |
//! | [`prefix`] | the prefix cache: from the content of a block to the blocks that hold it |
//! | `probe` | what the prefix cache holds for the request that is tried in every step |
//! | [`content`] | [`Content`], what a request's tokens are, and [`HashChain`], the identity of its blocks |

pub mod content;
pub mod pool;
pub mod prefix;
mod probe;

pub use content::{BlockHash, Content, HashChain, unique_stream};
pub use pool::BlockPool;
