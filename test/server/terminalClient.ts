/** The program in a terminal, as one of the clients of a thread. */
import { bundle } from "../bundle.ts"
import { makeFolder, type Program, start } from "../cli/program.ts"
import { pause, type Scene } from "./clients.ts"

/** Bundles the program with the command `attach` alone. */
export const bundleTerminal = (): string => bundle(new URL("../cli/children/attach.ts", import.meta.url))

/** Uses the terminal as a person does: looks at the thread once it is there, and allows calls. */
export const useTerminal = async (file: string, scene: Scene, ended: AbortSignal): Promise<Program | undefined> => {
  const isThere = async () => {
    const headers = { authorization: `Bearer ${scene.token}` }
    const state = await fetch(`${scene.url}/threads/${scene.thread}/state`, { headers }).catch(() => undefined)
    return state?.status === 200
  }
  while (!ended.aborted && !(await isThere())) await pause(20)
  if (ended.aborted) return undefined
  const home = makeFolder()
  const env = { HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home, DEEPAGENTS_ATTACH_TOKEN: scene.token }
  let isOver = false
  const begin = () => {
    isOver = false
    const running = start([file, "--cwd", home, "attach", scene.url, scene.thread], { columns: 120, rows: 40, env })
    void running.ended.then(() => (isOver = true))
    return running
  }
  let program = begin()
  // It may end at its start, while the others end the thread.
  const isOpen = () => program.raw().includes("/ commands")
  const use = async () => {
    while (!ended.aborted || !isOpen()) {
      // A person starts it again, if the server was down at its start.
      if (isOver && (await isThere())) program = begin()
      const last = program.text().split("\n").slice(-12).join("\n")
      // Enter is never pressed: another client may have decided meanwhile, and the key goes to the draft.
      if (last.includes("y yes") && !last.includes("stop typing") && scene.approves()) program.type("y")
      await pause(50)
    }
  }
  await use()
  return program
}

/** The lines of the terminal, once the end of the thread is there. */
export const linesOf = async (program: Program, end: string): Promise<ReadonlyArray<string>> => {
  await program.until(end)
  // The end is in the live part first.
  await program.draft((text) => text.includes("/ commands"))
  const lines = program.text().split("\n")
  program.kill("SIGKILL")
  await program.ended
  return lines
}
