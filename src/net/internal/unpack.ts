/** Bodies that were packed for the way. */

/** Encodings that are unpacked here. */
export type Packing = "gzip" | "deflate"

/** A transformer that unpacks bytes, by the declarations of the platform. */
type Unpacker = Pick<InstanceType<typeof DecompressionStream>, "readable" | "writable">

/** The part of Node's modules that unpacks: unlike `DecompressionStream`, it reads all members of a gzip file. */
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

/** Makes a transformer that unpacks bytes. */
export const makeUnpacker = (packing: Packing): Unpacker => {
  const load = typeof process === "undefined" ? undefined : process.getBuiltinModule
  const zlib = load?.("node:zlib")
  const stream = load?.("node:stream")
  return packing === "deflate" || zlib === undefined || stream === undefined
    ? new DecompressionStream(packing)
    : stream.Duplex.toWeb(zlib.createGunzip())
}
