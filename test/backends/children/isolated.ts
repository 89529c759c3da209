/** A program with commands in bubblewrap, to be run as another user, and to be killed. It prints the descriptors and rights of a command, then runs a long one. */
import { Effect } from "effect"
import * as OsSandbox from "effect-deepagents/backends/OsSandbox"

const [root = ".", word = "", ...commands] = process.argv.slice(2)

const list = [
  "for n in /proc/$$/fd/*; do n=${n##*/}; t=$(readlink /proc/$$/fd/$n)",
  'case $n in 0|1|2) printf " %s" $n;; *) [ -z "$t" ] || printf " %s=%s" $n $t;; esac; done'
].join("; ")

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const box = yield* OsSandbox.make({ root, ripgrep: false })
      process.stdout.write(`descriptors:${(yield* box.execute(list)).output}\n`)
      for (const command of commands) process.stdout.write((yield* box.execute(command)).output)
      if (word !== "") yield* Effect.forkScoped(box.execute(`sleep 300 & sh -c 'sleep 301; : ${word}'`))
      process.stdout.write("READY\n")
      if (word !== "") yield* Effect.sleep("5 minutes")
    })
  )
)
