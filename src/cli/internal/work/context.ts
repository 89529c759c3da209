/** The context of a command: settings, and whether its folder is trusted. */
import * as Prompt from "effect/cli/Prompt"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import { defined } from "../../../support/json/defined.ts"
import type { Shared } from "../commands/flags.ts"
import { placesOf } from "../config/places.ts"
import { readSettings } from "../config/settings.ts"
import { bringsOf, isTrusted, trust } from "../config/trust.ts"
import { fail, orFail } from "../failure.ts"
import { canAsk, tell } from "../output.ts"
import type { Context } from "./app.ts"

/**
 * Asks once whether to trust a folder that has settings, agents or instructions. In the demo and without a terminal it
 * is not trusted, and a line says so.
 */
const trusted = Effect.fnUntraced(function* (places: Context["places"], flags: Shared, asks: boolean) {
  if (yield* isTrusted(places)) return true
  if (flags.trust) return yield* Effect.as(trust(places), true)
  const brings = yield* bringsOf(places)
  if (brings.length === 0) return false
  const what = brings.join(", ")
  if (!asks || flags.demo || !(yield* canAsk)) {
    if (asks) yield* tell(`${places.project} is not trusted: its own ${what} is not read (--trust, if it is yours)`)
    return false
  }
  const answer = Prompt.Confirm({
    message: `This folder brings ${what}, which an agent would follow. Do you trust it?`,
    initial: false
  })
  const isYes = yield* Effect.orElseSucceed(Prompt.run(answer), () => false)
  return isYes ? yield* Effect.as(trust(places), true) : false
})

/** Reads settings and trust for a command. Commands that run no agent pass `asks: false`. */
export const contextOf = Effect.fnUntraced(function* (flags: Shared, asks = true) {
  const fs = yield* FileSystem.FileSystem
  const isFolder = Effect.map(fs.stat(flags.cwd), ({ type }) => type === "Directory")
  if (!(yield* orFail("usage", "--cwd: ")(isFolder))) return yield* fail("usage", `--cwd: ${flags.cwd} is no folder`)
  const places = placesOf(flags.cwd)
  const known = yield* trusted(places, flags, asks)
  const { agent, approvals, budget, maxTurns, model, thinking, tokens } = flags
  const settings = yield* readSettings({
    places,
    isTrusted: known,
    flags: defined({
      agent: Option.getOrUndefined(agent),
      approvals: flags.yolo ? "yolo" : Option.getOrUndefined(approvals),
      budget: Option.getOrUndefined(budget),
      maxTurns: Option.getOrUndefined(maxTurns),
      model: Option.getOrUndefined(model),
      thinking: Option.getOrUndefined(thinking),
      tokens: Option.getOrUndefined(tokens),
      plain: flags.plain ? true : undefined
    })
  })
  return { places, settings, isTrusted: known, isDemo: flags.demo } satisfies Context
})
