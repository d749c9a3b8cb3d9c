//! Resource usage of a world's part.

use anyhow::Context as _;

/// The resources that a process has used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// CPU time in seconds, including the kernel's on its behalf.
    pub cpu_seconds: f64,
    /// The most memory it held at once, in bytes.
    pub memory_bytes_max: u64,
}

impl Usage {
    pub(super) fn of(pid: u32) -> anyhow::Result<Self> {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}"));
        // The name may contain spaces; the fields after it don't. User and system time are the 14th
        // and 15th field.
        let stat = read("stat")?;
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks: u64 = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum();
        let number = |text: &str, name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
                .with_context(|| format!("no {name}"))
        };
        Ok(Self {
            cpu_seconds: ticks as f64 / rustix::param::clock_ticks_per_second() as f64,
            memory_bytes_max: number(&read("status")?, "VmHWM:")? * 1024,
        })
    }

    /// The usage since `before`; the memory is the maximum since the start.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds - before.cpu_seconds,
            memory_bytes_max: self.memory_bytes_max,
        }
    }
}
