"""Each peer with hybrid search as its own documentation builds it: our embedder, its own BM25,
splitter and fusion. Imported in the peers' environment only."""

from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from eval.retrieval.pipeline import Ranking, firsts
from eval.retrieval.sets import Document

QUERY, PASSAGE = "query: ", "passage: "
"""The prompts that the bundled model was trained with; citelog uses the same."""
Search = Callable[[str], Ranking]
"""A question to ids of documents with scores, best first; of each document its first passage."""
STEMMERS = {"en": "english", "de": "german", "ru": "russian"}
"""Languages of the sets for which a peer's keyword leg has a stemmer."""


def llamaindex(documents: Sequence[Document], model: Path, depth: int) -> Search:
    """Vector index and BM25 retriever, fused by `QueryFusionRetriever` (reciprocal rank)."""
    import Stemmer
    from llama_index.core import Document as Whole
    from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
    from llama_index.core.llms import MockLLM
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding
    from llama_index.retrievers.bm25 import BM25Retriever

    Settings.llm, Settings.embed_model = MockLLM(), MockEmbedding(embed_dim=1)
    embedder = HuggingFaceEmbedding(
        model_name=str(model), query_instruction=QUERY, text_instruction=PASSAGE, device="cpu"
    )
    whole = [Whole(text=d.markdown(title=True), metadata={"of": d.id}) for d in documents]
    for document in whole:  # an id is no text
        document.excluded_embed_metadata_keys = document.excluded_llm_metadata_keys = ["of"]
    nodes = SentenceSplitter(chunk_size=512, chunk_overlap=50).get_nodes_from_documents(whole)
    index = VectorStoreIndex(nodes, embed_model=embedder)
    language = STEMMERS.get(documents[0].lang, "")
    keywords = {"stemmer": Stemmer.Stemmer(language), "language": language} if language else {}
    depth = min(depth, len(nodes))
    bm25 = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=depth, **keywords)
    retriever = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=depth), bm25],
        similarity_top_k=depth,
        num_queries=1,
        mode="reciprocal_rerank",
        use_async=False,
    )

    def search(text: str) -> Ranking:
        return _firsts((n.node.metadata["of"], n.score) for n in retriever.retrieve(text))

    return search


def haystack(documents: Sequence[Document], model: Path, depth: int) -> Search:
    """In-memory store with BM25 and embedding retrievers, fused by `DocumentJoiner`."""
    from haystack import Document as Whole
    from haystack import Pipeline
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.preprocessors import DocumentSplitter
    from haystack.components.retrievers import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from haystack_integrations.components.embedders.sentence_transformers import (
        SentenceTransformersDocumentEmbedder,
        SentenceTransformersTextEmbedder,
    )

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    splitter = DocumentSplitter(split_by="word", split_length=250, split_overlap=30)
    whole = [Whole(content=d.markdown(title=True), meta={"of": d.id}) for d in documents]
    split = splitter.run(documents=whole)["documents"]
    embedder = SentenceTransformersDocumentEmbedder(
        model=str(model), prefix=PASSAGE, progress_bar=False
    )
    embedder.warm_up()
    store.write_documents(embedder.run(documents=split)["documents"])
    pipeline = Pipeline()
    pipeline.add_component("embed", SentenceTransformersTextEmbedder(
        model=str(model), prefix=QUERY, progress_bar=False
    ))  # fmt: skip
    pipeline.add_component("dense", InMemoryEmbeddingRetriever(store, top_k=depth))
    pipeline.add_component("bm25", InMemoryBM25Retriever(store, top_k=depth))
    pipeline.add_component("join", DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=depth))
    pipeline.connect("embed.embedding", "dense.query_embedding")
    pipeline.connect("dense", "join")
    pipeline.connect("bm25", "join")

    def search(text: str) -> Ranking:
        found = pipeline.run({"embed": {"text": text}, "bm25": {"query": text}})
        return _firsts((d.meta["of"], d.score) for d in found["join"]["documents"])

    return search


def txtai(documents: Sequence[Document], model: Path, depth: int) -> Search:
    """`Embeddings(hybrid=True)`: Faiss and its own BM25, equal weights."""
    from txtai import Embeddings

    embeddings = Embeddings(
        path=str(model), method="sentence-transformers", hybrid=True,
        instructions={"query": QUERY, "data": PASSAGE},
    )  # fmt: skip
    embeddings.index((d.id, d.markdown(title=True), None) for d in documents)

    def search(text: str) -> Ranking:
        return _firsts(embeddings.search(text, depth))

    return search


SYSTEMS: dict[str, tuple[Callable[[Sequence[Document], Path, int], Search], str]] = {
    "LlamaIndex": (llamaindex, "llama-index-core"),
    "Haystack": (haystack, "haystack-ai"),
    "txtai": (txtai, "txtai"),
}
"""By name: how it is built, and the package whose version is reported."""


def version(name: str) -> str:
    """Of the peer's package."""
    return metadata.version(SYSTEMS[name][1])


def _firsts(found: Iterable[tuple[Any, Any]]) -> Ranking:
    """The peers' own types as plain ones."""
    return firsts((str(id_), float(score)) for id_, score in found)
