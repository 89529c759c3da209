/** Names mistakes with layers in programs without types, which Effect would answer by "build is not a function". */
import * as Layer from "effect/Layer"

/** Finds the problem of a value that stands where a layer belongs; else `undefined`. */
export const findLayerProblem = (where: string, value: unknown): string | undefined => {
  if (Layer.isLayer(value)) return undefined
  if (typeof value === "function") {
    return `${where} needs a layer, and got a function. Call it: a layer with options is MemoryBackend.layer(), and not MemoryBackend.layer.`
  }
  if (Array.isArray(value)) return `${where} needs one layer, and got an array. Merge its layers: Layer.mergeAll(…).`
  return `${where} needs a layer, and got ${value === undefined ? "none" : "another value"}.`
}
