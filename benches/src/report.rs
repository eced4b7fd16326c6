//! Figures beside their targets.

/// One figure and what it may be.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    name: String,
    got: f64,
    target: f64,
    unit: &'static str,
    at_least: bool,
    note: String,
}

/// All figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Report(Vec<Figure>);

impl Report {
    /// A figure that should be at most `target`.
    pub(crate) fn at_most(
        &mut self,
        name: &str,
        got: f64,
        target: f64,
        unit: &'static str,
        note: String,
    ) {
        self.push(Figure {
            name: name.to_owned(),
            got,
            target,
            unit,
            at_least: false,
            note,
        });
    }

    /// A figure that should be at least `target`.
    pub(crate) fn at_least(
        &mut self,
        name: &str,
        got: f64,
        target: f64,
        unit: &'static str,
        note: String,
    ) {
        self.push(Figure {
            name: name.to_owned(),
            got,
            target,
            unit,
            at_least: true,
            note,
        });
    }

    fn push(&mut self, figure: Figure) {
        println!("{}", figure.line());
        self.0.push(figure);
    }

    /// The number of figures that miss their target.
    pub(crate) fn missed(&self) -> usize {
        self.0.iter().filter(|figure| !figure.holds()).count()
    }

    /// The number of figures.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Figure {
    fn holds(&self) -> bool {
        if self.at_least {
            self.got >= self.target
        } else {
            self.got <= self.target
        }
    }

    fn line(&self) -> String {
        let verdict = if self.holds() { "ok  " } else { "MISS" };
        let bound = if self.at_least { ">=" } else { "<=" };
        format!(
            "{verdict} {:<46} {:>9.2} {:<6} {bound} {:>7} {}",
            self.name, self.got, self.unit, self.target, self.note
        )
    }
}
