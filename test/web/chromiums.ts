/** The Chromiums that tests use: the headless shell of a package, and the whole browser of the machine. */
import { existsSync } from "node:fs"
import packaged from "@sparticuz/chromium"
import type { Network } from "effect-deepagents/net"
import * as NodeBrowser from "effect-deepagents/web/NodeBrowser"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isFull } from "../scale.ts"

export interface Kind {
  readonly name: string
  readonly path: Effect.Effect<string>
}

const shell: Kind = { name: "headless shell", path: Effect.promise(() => packaged.executablePath()) }

const wholePath = "/usr/bin/chromium"

/** Debian's Chromium, which `.ci/run` installs: a newer one, with other switches. */
const whole: Kind = { name: "whole browser", path: Effect.succeed(wholePath) }

/** A short run has the shell alone. */
export const kinds: ReadonlyArray<Kind> = isFull && existsSync(wholePath) ? [shell, whole] : [shell]

/** A browser under rules. It runs as root here, and so without its own sandbox. */
export const browserWith = (
  rules: Network.Rules,
  more: Partial<Parameters<typeof NodeBrowser.layer>[0]> = {},
  kind = shell
) =>
  Layer.unwrap(
    Effect.map(kind.path, (executablePath) =>
      NodeBrowser.layer({ rules, executablePath, sandbox: false, timeout: 3000, ...more })
    )
  )
