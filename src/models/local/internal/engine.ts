/** A model in memory: loaded once, released with its Scope. */
import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as library from "node-llama-cpp"
import type { Llama, LlamaModel } from "node-llama-cpp"
import type { ModelError } from "../../../core/ModelError.ts"
import { loadPeer } from "../../internal/wire/peer.ts"
import { errorOf, loadError, type Origin } from "./errors.ts"

/** The package, which is loaded when it is needed. */
export type Library = typeof library

/** Progress of a model before it can answer: bytes of a download, or the share of the file that is loaded (0 to 1). */
export type Progress =
  | { readonly _tag: "Download"; readonly receivedBytes: number; readonly totalBytes: number }
  | { readonly _tag: "Load"; readonly fraction: number }

/** The file of a model, and the machine that runs it. */
export interface Source {
  /** The path of a GGUF file; or the place to get one, `hf:<user>/<repository>:<quantisation>` or a URL. */
  readonly model: string
  /**
   * The folder of downloads. With it, a relative `model` is a file in there; without it, one in the current
   * directory. Default: `~/.node-llama-cpp/models`.
   */
  readonly directory?: string | undefined
  /** The hardware that computes; `false` for the processor. Default: the best that is there. */
  readonly gpu?: "auto" | "metal" | "cuda" | "vulkan" | false | undefined
  /**
   * The number of threads. More threads than free cores make everything slower by orders of magnitude. Default: one
   * less than there are cores.
   */
  readonly threads?: number | undefined
  /** Gets the progress of loading. Default: it is logged at debug level. */
  readonly onProgress?: ((progress: Progress) => Effect.Effect<void>) | undefined
}

export interface Engine {
  readonly library: Library
  readonly llama: Llama
  readonly model: LlamaModel
  readonly path: string
  readonly threads: number
}

const isRemote = (model: string): boolean => /^(?:hf|huggingface|https?):/.test(model)

/** Names a model by its file without the ending, or by its address. */
export const nameOf = (model: string): string => {
  if (isRemote(model)) return model.replace(/^(?:hf|huggingface):/, "")
  return (model.split(/[\\/]/).at(-1) ?? model).replace(/\.gguf$/i, "")
}

/** Makes the location for the library: by itself it takes a relative path for a file among its downloads. */
const locationOf = ({ directory, model }: Source): string =>
  isRemote(model) || directory !== undefined ? model : resolve(model)

const logged = (progress: Progress): Effect.Effect<void> =>
  progress._tag === "Download"
    ? Effect.logDebug(`model download: ${progress.receivedBytes} of ${progress.totalBytes} bytes`)
    : Effect.logDebug(`model loading: ${Math.round(progress.fraction * 100)} %`)

/** Reads the model's own context size from its file, without loading it. `undefined` for a remote file. */
export const trainedFor = Effect.fnUntraced(function* (
  origin: Origin,
  source: Source
): Effect.fn.Return<number | undefined, ModelError> {
  if (isRemote(source.model)) return undefined
  const path = source.directory === undefined ? source.model : resolve(source.directory, source.model)
  const loaded = yield* loadPeer(origin, "node-llama-cpp", () => import("node-llama-cpp"))
  const { architectureMetadata } = yield* Effect.tryPromise({
    try: (signal) => loaded.readGgufFileInfo(resolve(path), { readTensorInfo: false, logWarnings: false, signal }),
    catch: loadError(origin, "file")
  })
  return architectureMetadata.context_length
})

/** Loads a model. Closing the scope frees it. */
export const load = Effect.fnUntraced(function* (
  origin: Origin,
  source: Source
): Effect.fn.Return<Engine, ModelError, Scope.Scope> {
  const loaded = yield* loadPeer(origin, "node-llama-cpp", () => import("node-llama-cpp"))
  const { threads = Math.max(1, globalThis.navigator.hardwareConcurrency - 1) } = source
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const { onProgress = logged } = source
  const tell = (progress: Progress): void => void runFork(onProgress(progress))

  const llama = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        loaded.getLlama({
          gpu: source.gpu ?? "auto",
          // A library must not compile llama.cpp on its own.
          build: "never",
          skipDownload: true,
          progressLogs: false,
          maxThreads: threads,
          logLevel: loaded.LlamaLogLevel.warn,
          logger: (level, message) => void runFork(Effect.logDebug(`llama.cpp ${level}: ${message.trim()}`))
        }),
      catch: loadError(origin, "binary")
    }),
    (resource) => Effect.promise(() => resource.dispose())
  )

  const path = yield* Effect.tryPromise({
    try: (signal) =>
      loaded.resolveModelFile(locationOf(source), {
        cli: false,
        signal,
        ...(source.directory === undefined ? {} : { directory: source.directory }),
        onProgress: ({ downloadedSize, totalSize }) =>
          tell({ _tag: "Download", receivedBytes: downloadedSize, totalBytes: totalSize })
      }),
    catch: (cause) =>
      isRemote(source.model)
        ? errorOf(origin, { _tag: "Transport" }, "the model could not be downloaded", cause)
        : loadError(origin, "file")(cause)
  })

  const model = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: (loadSignal) =>
        llama.loadModel({
          modelPath: path,
          loadSignal,
          onLoadProgress: (fraction) => tell({ _tag: "Load", fraction })
        }),
      catch: loadError(origin, "model")
    }),
    (resource) => Effect.promise(() => resource.dispose()),
    { interruptible: true }
  )
  return {
    library: loaded,
    llama,
    model,
    path,
    threads: Math.max(1, Math.min(threads, llama.cpuMathCores || threads))
  }
})
