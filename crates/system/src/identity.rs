//! Which process on which boot of the machine: a word that is written down and can later be asked whether it still holds.

use std::fs;

/// This process, as `process PID (start TICKS, boot ID)`. The start time tells it from a later process of the same number.
pub fn own_identity() -> String {
    let pid = std::process::id();
    format!("process {pid} (start {}, boot {})", start_of(pid).unwrap_or_default(), boot())
}

/// Whether the process that wrote `identity` is still there. True when that cannot be told: a word of another form may be from another machine.
pub fn identity_is_alive(identity: &str) -> bool {
    let Some((pid, start, its_boot)) = parse(identity) else { return true };
    its_boot == boot() && start_of(pid) == Some(start)
}

fn parse(identity: &str) -> Option<(u32, u64, &str)> {
    let (pid, rest) = identity.strip_prefix("process ")?.split_once(" (start ")?;
    let (start, rest) = rest.split_once(", boot ")?;
    Some((pid.parse().ok()?, start.parse().ok()?, rest.strip_suffix(')')?))
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// Clock ticks between the boot and the start of a process; none for a process that is gone or only waits to be reaped.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name is in parentheses and may hold anything, parentheses too.
    let mut fields = stat.get(stat.rfind(')')? + 2..)?.split(' ');
    match fields.next()? {
        "Z" | "X" => None,
        // proc(5): the state is field 3, the start time field 22.
        _ => fields.nth(18)?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_itself_and_nobody_else() {
        let own = own_identity();
        assert!(identity_is_alive(&own));
        let (pid, start, boot) = parse(&own).expect("own word");
        assert!(
            !identity_is_alive(&format!("process {pid} (start {}, boot {boot})", start + 1)),
            "a later process of that number"
        );
        assert!(!identity_is_alive(&format!("process {pid} (start {start}, boot other)")), "another boot");
        assert!(identity_is_alive("somebody on another machine"), "not known is not dead");
    }
}
