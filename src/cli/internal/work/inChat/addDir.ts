/** `/add-dir`: lets the file tools of a chat use another folder. */
import * as Effect from "effect/Effect"
import type { Command } from "../../chat/options.ts"
import type { Context } from "../app.ts"
import { readFolder } from "../machine/host.ts"
import { makeRun, show } from "./outcome.ts"

/** Makes the command. The model is told of the folder before its next round. */
export const addDir = ({ folders, places }: Context) =>
  Effect.map(makeRun, (run): Command => ({
    name: "add-dir",
    argument: "[folder[:write]]",
    description: "a folder beside the working folder, to be read, or changed with :write; without one, a list",
    run: (argument) =>
      run(
        Effect.gen(function* () {
          const text = argument.trim()
          if (text === "") {
            const lines = folders.list().map(({ access, path }) => `- \`${path}\` (${access})`)
            return show([`- \`${places.project}\` (write)`, ...lines].join("\n"))
          }
          const folder = yield* readFolder(text, places.project, "/add-dir")
          folders.add(folder)
          return show(
            `File tools may ${folder.access === "write" ? "read and change" : "read"} \`${folder.path}\` now.`
          )
        })
      )
  }))
