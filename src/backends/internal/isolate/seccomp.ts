/**
 * The system calls that commands of a sandbox may not make, as a program of classic BPF for the kernel.
 *
 * They reach parts of the kernel that programs rarely need (tracing, mounts, keyrings, `io_uring`, `bpf`), make new user
 * namespaces, type into terminals, or open kinds of sockets that no network namespace holds, such as vsock.
 */

import { valueAt } from "../../../support/json/valueAt.ts"

/** The numbers of calls on a kind of processor. `AUDIT_ARCH_…` is its number for the kernel. */
interface Machine {
  readonly architecture: number
  readonly socket: number
  readonly clone: number
  readonly ioctl: number
  readonly refused: { readonly [call: string]: number }
}

/** Calls that have one number on all processors, from the time after 2019. */
const common = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  clone3: 435,
  pidfd_getfd: 438,
  mount_setattr: 442
}

const machines: { readonly [processor: string]: Machine } = {
  x64: {
    architecture: 0xc000003e,
    socket: 41,
    clone: 56,
    ioctl: 16,
    // prettier-ignore
    refused: {
      ptrace: 101, syslog: 103, personality: 135, pivot_root: 155, acct: 163, mount: 165, umount2: 166, swapon: 167,
      swapoff: 168, reboot: 169, init_module: 175, delete_module: 176, quotactl: 179, kexec_load: 246, add_key: 248,
      request_key: 249, keyctl: 250, unshare: 272, perf_event_open: 298, fanotify_init: 300, open_by_handle_at: 304,
      setns: 308, process_vm_readv: 310, process_vm_writev: 311, kcmp: 312, finit_module: 313, kexec_file_load: 320,
      bpf: 321, userfaultfd: 323, ...common
    }
  },
  arm64: {
    architecture: 0xc00000b7,
    socket: 198,
    clone: 220,
    ioctl: 29,
    // prettier-ignore
    refused: {
      ptrace: 117, syslog: 116, personality: 92, pivot_root: 41, acct: 89, mount: 40, umount2: 39, swapon: 224,
      swapoff: 225, reboot: 142, init_module: 105, delete_module: 106, quotactl: 60, kexec_load: 104, add_key: 217,
      request_key: 218, keyctl: 219, unshare: 97, perf_event_open: 241, fanotify_init: 262, open_by_handle_at: 265,
      setns: 268, process_vm_readv: 270, process_vm_writev: 271, kcmp: 272, finit_module: 273, kexec_file_load: 294,
      bpf: 280, userfaultfd: 282, ...common
    }
  }
}

const load = 0x20
const isEqual = 0x15
const isAtLeast = 0x35
const hasBits = 0x45
const answer = 0x06

const allow = 0x7fff0000
const failWith = (errno: number): number => 0x00050000 | errno
const notPermitted = failWith(1)
/** Programs take another way then: `clone` for `clone3`, whose flags a filter can't read. */
const notImplemented = failWith(38)
const noSuchFamily = failWith(97)

/** The offsets of the numbers that a filter reads. */
const callAt = 0
const architectureAt = 4
const argumentAt = (index: number): number => 16 + 8 * index

/** Calls of x64 with short pointers have numbers of their own from here on. */
const x32 = 0x40000000
const newUserNamespace = 0x10000000
/** `TIOCSTI` types into a terminal, `TIOCLINUX` pastes into one. */
const typing = [0x5412, 0x541c]
/** Unix, IPv4, IPv6 and netlink. */
const families = [1, 2, 10, 16]

type Line = readonly [code: number, ifTrue: number, ifFalse: number, operand: number]

const linesOf = ({ architecture, clone, ioctl, refused, socket }: Machine): ReadonlyArray<Line> => [
  [load, 0, 0, architectureAt],
  [isEqual, 1, 0, architecture],
  [answer, 0, 0, notPermitted],
  [load, 0, 0, callAt],
  [isAtLeast, 0, 1, x32],
  [answer, 0, 0, notImplemented],
  ...Object.values(refused).flatMap((call): ReadonlyArray<Line> => [
    [isEqual, 0, 1, call],
    [answer, 0, 0, call >= common.io_uring_setup ? notImplemented : notPermitted]
  ]),
  [isEqual, 0, 4, clone],
  [load, 0, 0, argumentAt(0)],
  [hasBits, 0, 1, newUserNamespace],
  [answer, 0, 0, notPermitted],
  [load, 0, 0, callAt],
  [isEqual, 0, 2 + 2 * typing.length, ioctl],
  [load, 0, 0, argumentAt(1)],
  ...typing.flatMap((request): ReadonlyArray<Line> => [
    [isEqual, 0, 1, request],
    [answer, 0, 0, notPermitted]
  ]),
  [load, 0, 0, callAt],
  [isEqual, 0, 2 + families.length, socket],
  [load, 0, 0, argumentAt(0)],
  ...families.map((family, index): Line => [isEqual, families.length - index, 0, family]),
  [answer, 0, 0, noSuchFamily],
  [answer, 0, 0, allow]
]

/** Makes the filter for a kind of processor. `undefined`: its calls are not known. */
export const makeFilter = (processor: string): Uint8Array | undefined => {
  const machine = valueAt(machines, processor)
  if (machine === undefined) return undefined
  const lines = linesOf(machine)
  const bytes = new DataView(new ArrayBuffer(8 * lines.length))
  for (const [index, [code, ifTrue, ifFalse, operand]] of lines.entries()) {
    bytes.setUint16(8 * index, code, true)
    bytes.setUint8(8 * index + 2, ifTrue)
    bytes.setUint8(8 * index + 3, ifFalse)
    bytes.setUint32(8 * index + 4, operand >>> 0, true)
  }
  return new Uint8Array(bytes.buffer)
}
