"""Every experiment, by its name on the command line; each further one adds a module here."""

from __future__ import annotations

from bentpipe_experiments import (
    hk99_fig13,
    hk99_fig20,
    hk99_stp_fig8,
    hk99_stp_fig9,
    hk99_stp_table2,
    pep_buffer,
    pep_opening,
    zb03_fig4,
    zb03_fig7,
    zb03_fig8,
    zb03_fig9,
    zb03_fig11,
)
from bentpipe_experiments.model import Experiment

MODULES = (
    hk99_fig13,
    hk99_fig20,
    hk99_stp_fig8,
    hk99_stp_fig9,
    hk99_stp_table2,
    pep_buffer,
    pep_opening,
    zb03_fig4,
    zb03_fig7,
    zb03_fig8,
    zb03_fig9,
    zb03_fig11,
)

EXPERIMENTS: dict[str, Experiment] = {
    experiment.id: experiment for module in MODULES for experiment in module.EXPERIMENTS
}
