"""TRL's ``KTOTrainer`` as `trainers.objectives` wants it; imported when training begins.

What TRL 1.16 does on the way from rows to loss, and what is done about it here:

- It would render and tokenise rows anew, with the template's own line end after a turn: the rows
  come as token ids, like those of SFT, so there is nothing to prepare.
- A model that has an adapter is copied as the reference, under the name ``ref``. A checkpoint then
  holds both, and Transformers 5.19 loads of such a checkpoint only the one in the folder ``ref``:
  a resumed run would begin anew. The reference is made from where the run starts, so no
  checkpoint has to hold it.
- It warns that weights of 1 and 1 don't fit three bad rows a good one; they are the paper's.
"""

import shutil
from pathlib import Path
from typing import Any

from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from trl import KTOTrainer

REFERENCE = "ref"


class UnpairedTrainer(KTOTrainer):  # type: ignore[misc]
    """A ``KTOTrainer`` of rows that are token ids, whose checkpoints can be resumed from."""

    def _prepare_dataset(self, dataset: Any, *_: Any) -> Any:
        return dataset

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        name = f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        if self.args.should_save:
            shutil.rmtree(Path(self.args.output_dir) / name / REFERENCE, ignore_errors=True)
