/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const chromaIndexLayer = "url:s;tenant?:s;database?:s;apiKey?:~effect/Redacted~"

export const chunkerChunk = "tokens?:n;overlap?:n;split?:f"

export const embeddingCacheLayer = "model:s"

export const hashingEmbeddingLayer = "dimensions?:n"

export const indexerFolder = "formats?:a;glob?:s;source?:s;code?:f;most?:n;tokens?:n;overlap?:n;version?:s"

export const indexerRun = "split?:f;complete?:s;tokens?:n;overlap?:n;version?:s"

export const indexerWatch = "formats?:a;glob?:s;source?:s;code?:f;most?:n;tokens?:n;overlap?:n;version?:s;every?:d"

export const qdrantIndexLayer = "url:s;apiKey?:~effect/Redacted~"

export const ragCitations = "required?:b;maxRevisions?:n"

export const ragCodeSearch = "space:o;filter?:o;rerank?:f;halfLife?:d"

export const ragMake = "space:o;filter?:o;rerank?:f;halfLife?:d"

export const ragSupported = "required?:b;maxRevisions?:n;space:o;least?:n"

export const rerankByServer = "url:s;model:s;apiKey?:~effect/Redacted~"

export const retrieverSearch = "limit?:n;filter?:o;alpha?:n;halfLife?:d;rerank?:f;above?:n;below?:n"
