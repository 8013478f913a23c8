"""The twin of src/worker/models/ocr_det without squeeze and excitation, as the cases have it, in plain PyTorch."""
import twin
from ocr_det import Detector, INPUTS, loss_of

if __name__ == "__main__":
    twin.run(lambda: Detector(use_se=False), INPUTS, loss_of=loss_of)
