/* Preloaded into User-Mode Linux, which up to 6.12 keeps 2696 octets of a process's extended
 * registers. Where the processor has more (AMX), the host's kernel refuses to set them from that
 * little. This pads them with zeros, the state of registers that nobody uses; the host's kernel
 * cuts the length to what it has. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#define LARGEST 65536

typedef long call(int, pid_t, void *, void *);

static char whole[LARGEST];

long ptrace(enum __ptrace_request request, ...)
{
	static call *real;
	va_list rest;

	va_start(rest, request);
	pid_t pid = va_arg(rest, pid_t);
	void *address = va_arg(rest, void *);
	void *data = va_arg(rest, void *);
	va_end(rest);
	if (real == NULL)
		real = (call *)dlsym(RTLD_NEXT, "ptrace");
	if (request != PTRACE_SETREGSET || (long)address != NT_X86_XSTATE)
		return real(request, pid, address, data);

	struct iovec *given = data;
	if (given->iov_len >= LARGEST)
		return real(request, pid, address, data);
	memcpy(whole, given->iov_base, given->iov_len);
	memset(whole + given->iov_len, 0, LARGEST - given->iov_len);
	struct iovec padded = { whole, LARGEST };
	return real(request, pid, address, &padded);
}
