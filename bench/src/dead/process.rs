//! Processor time of another process.

use anyhow::Result;

/// Fields of `/proc/PID/stat` between the name, which ends with the last bracket, and user and
/// system time: eleven (`man 5 proc_pid_stat`).
const FIELDS_BEFORE: usize = 11;

/// Processor time of a process in seconds, user and system.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let ticks_per_second = u32::try_from(rustix::param::clock_ticks_per_second())?;
    Ok(ticks(&stat) / f64::from(ticks_per_second))
}

fn ticks(stat: &str) -> f64 {
    let behind_the_name = stat.rsplit(')').next().unwrap_or_default();
    behind_the_name
        .split_whitespace()
        .skip(FIELDS_BEFORE)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_moves_no_field() {
        let stat = "12 (a) b) S 1 12 12 0 -1 4194560 5 0 0 0 70 8 900 900 20 0";
        assert!((ticks(stat) - 78.0).abs() < 1e-9);
    }
}
