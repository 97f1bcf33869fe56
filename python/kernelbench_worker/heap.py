"""A candidate's device memory: torch allocates from memory that the judge can see.

Outputs are then where the judge reads them, and only their offsets are published. torch keeps its
caching allocator; what that would take from the driver it takes from our library, which hands
out pieces of the judge's allocation. The size of the heap is the candidate's memory limit.
"""
import ctypes
import functools

import torch

from .errors import WorkerError

_DEVICE = 0


def _keep_for_ever(thing):
    """Spares its destructor, which torch's pools do not survive while another one is in use."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


class Heap:
    """Routes the process's allocations on the GPU to `size` bytes of `mapping`, for good."""

    def __init__(self, mapping, size, library):
        self._mapping = mapping
        self.address, self.size = mapping.address, size
        try:
            functions = ctypes.CDLL(library)
        except OSError as error:
            raise WorkerError("protocol", f"the heap's library cannot be loaded: {error}") from error
        if functions.kb_heap_init(ctypes.c_void_p(self.address), ctypes.c_size_t(size)) != 0:
            raise WorkerError("protocol", "the heap's library refuses the memory")
        allocator = torch.cuda.memory.CUDAPluggableAllocator(library, "kb_heap_alloc", "kb_heap_free")
        self._allocator = allocator.allocator()
        self._pool = self._new_pool()
        _keep_for_ever(self._allocator)
        _keep_for_ever(self._pool)
        self._begin, self._end = torch._C._cuda_beginAllocateToPool, torch._C._cuda_endAllocateToPool
        self._away = 0  # how many graphs are being captured, or warmed up
        self._enter()
        self._give_graphs_pools_of_the_heap()

    def settle(self):
        """Returns blocks that side streams used (`record_stream`): torch puts that off while a pool is in use.

        Only when half of the heap is taken: what is cached spares the next turn its allocations, as it does
        in the reference's worker.
        """
        if not self._away and torch.cuda.memory_reserved(_DEVICE) > self.size // 2:
            self._leave()
            torch.cuda.empty_cache()
            self._enter()

    def _new_pool(self):
        return torch.cuda.MemPool(self._allocator)

    # torch.cuda.use_mem_pool routes one thread's allocations; these do it for all threads.

    def _enter(self):
        self._begin(_DEVICE, self._pool.id)

    def _leave(self):
        self._end(_DEVICE, self._pool.id)
        torch._C._cuda_releasePool(_DEVICE, self._pool.id)

    def _step_aside(self):
        if not self._away:
            self._leave()
        self._away += 1

    def _step_back(self):
        if self._away:
            self._away -= 1
            if not self._away:
                self._enter()

    def _give_graphs_pools_of_the_heap(self):
        """Lets CUDA graphs have private pools.

        What a graph uses must not be given to others while the graph lives, so its memory comes of a pool
        of its own (made of the heap), and ours must not be in use meanwhile: which of two pools in use
        serves an allocation depends on the version of torch.
        """
        graph = torch.cuda.CUDAGraph
        capture_begin, capture_end = graph.capture_begin, graph.capture_end
        pool_begin, pool_end = torch._C._cuda_beginAllocateCurrentThreadToPool, torch._C._cuda_endAllocateToPool
        capturing = {}

        @functools.wraps(capture_begin)
        def begin_capture(self_, pool=None, *args, **kwargs):
            own = None
            if pool is None:
                own = self._new_pool()
                pool = own.id
            self._step_aside()
            try:
                capture_begin(self_, pool, *args, **kwargs)
            except BaseException:
                own = None  # while no pool is in use: torch would abort
                self._step_back()
                raise
            capturing[id(self_)] = own  # from the end of the capture on the graph holds it

        @functools.wraps(capture_end)
        def end_capture(self_):
            try:
                capture_end(self_)
            finally:
                if id(self_) in capturing:
                    del capturing[id(self_)]
                    self._step_back()

        # torch.compile's graphs: warm-up runs allocate in the graphs' pool, too.
        def begin_pool(device, pool):
            self._step_aside()
            try:
                pool_begin(device, pool)
            except BaseException:
                self._step_back()
                raise

        def end_pool(device, pool):
            try:
                pool_end(device, pool)
            finally:
                self._step_back()

        def graph_pool_handle():
            pool = self._new_pool()
            _keep_for_ever(pool)
            return pool.id

        graph.capture_begin, graph.capture_end = begin_capture, end_capture
        torch._C._cuda_beginAllocateCurrentThreadToPool = begin_pool
        torch._C._cuda_endAllocateToPool = end_pool
        torch.cuda.graph_pool_handle = torch.cuda.graphs.graph_pool_handle = graph_pool_handle
