// Only for D: ours, in a program that imports Effect as most do.
import { Effect, Schema, Stream } from "effect"
export * from "./ours.mjs"

if (!Effect.isEffect(Effect.void) || Schema.String === undefined || Stream.empty === undefined)
  throw new Error("no Effect")
