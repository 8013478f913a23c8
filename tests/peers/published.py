"""Writes the weights of one of our models as others publish them: other names, and tensors that are no weights.

In the folder given: weights.safetensors (ours). Written: gpt2.safetensors or bert.safetensors, by what the weights are.
"""
import os
import sys

import torch

import tensor_file


def as_gpt2(ours):
    """Hugging Face's gpt2: no leading name, a mask in every layer."""
    theirs = {name.removeprefix("transformer."): value for name, value in ours.items()}
    for name in [n for n in theirs if n.endswith("attn.c_attn.weight")]:
        theirs[name.replace("c_attn.weight", "bias")] = torch.ones(1, 1, 72, 72).tril()
        theirs[name.replace("c_attn.weight", "masked_bias")] = torch.tensor(-1e4)
    theirs["lm_head.weight"] = theirs["wte.weight"]
    return theirs


def as_bert(ours):
    """Google's names of normalisations, and what Hugging Face keeps beside the weights."""
    theirs = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
              for name, value in ours.items()}
    theirs["bert.embeddings.position_ids"] = torch.arange(70).unsqueeze(0)
    theirs["cls.predictions.decoder.weight"] = ours["bert.embeddings.word_embeddings.weight"]
    theirs["cls.predictions.decoder.bias"] = ours["cls.predictions.bias"]
    return theirs


if __name__ == "__main__":
    folder = sys.argv[1]
    ours = tensor_file.load(os.path.join(folder, "weights.safetensors"))
    bert = "bert.embeddings.word_embeddings.weight" in ours
    tensor_file.save(os.path.join(folder, "bert.safetensors" if bert else "gpt2.safetensors"),
                     as_bert(ours) if bert else as_gpt2(ours))
