/** The context of a command: settings, and what is trusted of its folder. */
import { isAbsolute } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import { defined } from "../../../support/json/defined.ts"
import type { SharedFlags } from "../commands/flags.ts"
import { readMemory } from "../config/memory.ts"
import { placesOf } from "../config/places.ts"
import { readSettings } from "../config/settings.ts"
import { fail, orFail } from "../failure.ts"
import type { Context } from "./app.ts"
import { noExtensions, openExtensions } from "./extensions/open.ts"
import { makeFolders, readFolder } from "./machine/host.ts"
import { makeIsolation } from "./machine/isolated.ts"
import { reviewProject } from "./trusting.ts"

const describeGone = (cwd: string): string =>
  isAbsolute(cwd)
    ? `--cwd: ${cwd} can't be reached; choose another folder`
    : "The folder that you are in was removed. Go to another one (cd), or name one: --cwd PATH"

/** Reads settings and trust for a command. Commands that run no agent pass `asks: false`. */
export const contextOf = Effect.fnUntraced(function* (flags: SharedFlags, asks: boolean) {
  const fs = yield* FileSystem.FileSystem
  const isFolder = Effect.map(fs.stat(flags.cwd), ({ type }) => type === "Directory")
  if (!(yield* orFail("usage", "--cwd: ")(isFolder))) return yield* fail("usage", `--cwd: ${flags.cwd} is no folder`)
  // Tools and commands print real paths, so the program names its folder by it, too.
  const places = placesOf(yield* Effect.catch(fs.realPath(flags.cwd), () => fail("usage", describeGone(flags.cwd))))
  const project = yield* reviewProject(places, { trustsAll: flags.trust, tells: asks, asks: asks && !flags.demo })
  const { agent, allow, approvals, budget, deny, maxTurns, model, thinking, tokens } = flags
  const settings = yield* readSettings({
    places,
    project,
    flags: defined({
      agent: Option.getOrUndefined(agent),
      approvals: flags.yolo ? "yolo" : Option.getOrUndefined(approvals),
      budget: Option.getOrUndefined(budget),
      maxTurns: Option.getOrUndefined(maxTurns),
      model: Option.getOrUndefined(model),
      thinking: Option.getOrUndefined(thinking),
      tokens: Option.getOrUndefined(tokens),
      plain: flags.plain ? true : undefined,
      permissions: allow.length + deny.length === 0 ? undefined : { allow, deny }
    })
  })
  const named = settings.folders
  const folders = [
    ...(yield* Effect.forEach(named?.value ?? [], (text) =>
      readFolder(text, places.project, `${named?.where}: folders`)
    )),
    ...(yield* Effect.forEach(flags.addDir, (text) => readFolder(text, places.project, "--add-dir")))
  ]
  const memory = yield* readMemory(places)
  const extensions = asks ? yield* openExtensions(places, project) : noExtensions
  return {
    places,
    settings,
    project,
    memory,
    extensions,
    isDemo: flags.demo,
    isolation: yield* makeIsolation(settings, flags.demo),
    folders: makeFolders(folders)
  } satisfies Context
})
