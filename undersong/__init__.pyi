from undersong.errors import UndersongError as UndersongError
from undersong.judges.limits import RunLimits as RunLimits
from undersong.models import Case as Case
from undersong.models import Conversation as Conversation
from undersong.models import Finding as Finding
from undersong.models import Message as Message
from undersong.monitor import Monitor as Monitor
from undersong.monitor import Observation as Observation
from undersong.monitor import SyncMonitor as SyncMonitor
from undersong.patterns.detect import detect_patterns as detect_patterns
from undersong.pipeline.audit import audit as audit
from undersong.pipeline.compat import build_evaluation_prompt as build_evaluation_prompt
from undersong.pipeline.compat import scan_keywords as scan_keywords
from undersong.pipeline.compat import scan_thread as scan_thread
from undersong.pipeline.options import Options as Options
from undersong.rows.arrow import to_frame as to_frame

__version__: str
__all__: list[str]
