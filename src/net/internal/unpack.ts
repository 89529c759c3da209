/** Decompresses response bodies. */

/** Supported compressions. */
export type Packing = "gzip" | "deflate"

/** A transform stream that decompresses bytes. */
type Unpacker = Pick<InstanceType<typeof DecompressionStream>, "readable" | "writable">

/** Modules of Node. Unlike `DecompressionStream`, `node:zlib` reads all members of a gzip file. */
interface Modules {
  readonly "node:zlib": { readonly createGunzip: () => object }
  readonly "node:stream": {
    readonly Duplex: { readonly toWeb: (stream: object) => Unpacker }
  }
}

/** The `process` of Node, Bun and Deno. */
declare const process:
  | { readonly getBuiltinModule?: <Name extends keyof Modules>(name: Name) => Modules[Name] | undefined }
  | undefined

/** Makes a transform stream that decompresses bytes. */
export const makeUnpacker = (packing: Packing): Unpacker => {
  const load = typeof process === "undefined" ? undefined : process.getBuiltinModule
  const zlib = load?.("node:zlib")
  const stream = load?.("node:stream")
  return packing === "deflate" || zlib === undefined || stream === undefined
    ? new DecompressionStream(packing)
    : stream.Duplex.toWeb(zlib.createGunzip())
}
