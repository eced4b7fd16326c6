//! Reading and writing a sealed value in one step.

use crate::ttl::seal::open;
use crate::ttl::timing::{Timing, Verdict};
use crate::value::{EditAction, ValueEdit};

/// Lets `edit` see and change what is inside `old`, and says in `change` what that makes of it.
/// `own` is a buffer.
pub(super) fn edit_sealed(
    timing: Timing,
    now_ms: u64,
    old: Option<&[u8]>,
    own: &mut ValueEdit,
    change: &mut ValueEdit,
    edit: impl FnOnce(Option<&[u8]>, &mut ValueEdit),
) {
    let verdict = old.map(|sealed| timing.judge(sealed, now_ms));
    let shown = old
        .filter(|_| verdict.is_some_and(|verdict| timing.shows(verdict)))
        .map(|sealed| open(sealed).1);
    own.keep();
    edit(shown, own);
    match (own.action(), verdict) {
        (EditAction::Put, _) => timing.seal(own.bytes(), now_ms, change.buffer()),
        (EditAction::Clear, _) | (EditAction::Keep, Some(Verdict::Expired)) => change.clear(),
        (EditAction::Keep, Some(Verdict::Refresh)) => {
            let value = shown.expect("what is refreshed is shown");
            timing.seal(value, now_ms, change.buffer());
        }
        (EditAction::Keep, Some(Verdict::Live) | None) => change.keep(),
    }
}
