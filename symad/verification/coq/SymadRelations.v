(** The relations between functions on which normal forms rest, with their side conditions. *)

Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
Require Import SymadFunctions.
Open Scope R_scope.

Lemma r_exp_sum a b : exp (a + b) = exp a * exp b.
Proof. apply exp_plus. Qed.

Lemma r_exp_opposite a : exp (- a) = / exp a.
Proof. apply exp_Ropp. Qed.

Lemma r_exp_multiple a n : exp (INR n * a) = exp a ^ n.
Proof.
  induction n as [|n IH]; [simpl; rewrite Rmult_0_l; apply exp_0|].
  rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus, IH. simpl. ring.
Qed.

Lemma r_log_exp a : ln (exp a) = a.
Proof. apply ln_exp. Qed.

Lemma r_exp_log a : 0 < a -> exp (ln a) = a.
Proof. apply exp_ln. Qed.

Lemma r_log_product a b : 0 < a -> 0 < b -> ln (a * b) = ln a + ln b.
Proof. apply ln_mult. Qed.

Lemma r_log_quotient a b : 0 < a -> 0 < b -> ln (a / b) = ln a - ln b.
Proof. intros A B. unfold Rdiv. rewrite ln_mult, ln_Rinv; try assumption; [ring | now apply Rinv_0_lt_compat]. Qed.

Lemma r_log_power a n : 0 < a -> ln (a ^ n) = INR n * ln a.
Proof. intros A. now apply ln_pow. Qed.

Lemma r_sqrt_square a : 0 <= a -> sqrt a ^ 2 = a.
Proof. apply pow2_sqrt. Qed.

Lemma r_sqrt_of_square a : sqrt (a ^ 2) = Rabs a.
Proof. rewrite <- Rsqr_pow2. apply sqrt_Rsqr_abs. Qed.

Lemma r_sqrt_product a b : 0 <= a -> 0 <= b -> sqrt (a * b) = sqrt a * sqrt b.
Proof. apply sqrt_mult. Qed.

Lemma r_sqrt_quotient a b : 0 <= a -> 0 < b -> sqrt (a / b) = sqrt a / sqrt b.
Proof. apply sqrt_div. Qed.

Lemma r_power_of_exp a b : 0 < a -> Rpower a b = exp (b * ln a).
Proof. reflexivity. Qed.

Lemma r_power_sum a b c : Rpower a (b + c) = Rpower a b * Rpower a c.
Proof. apply Rpower_plus. Qed.

Lemma r_power_power a b c : Rpower (Rpower a b) c = Rpower a (b * c).
Proof. apply Rpower_mult. Qed.

Lemma r_power_half a : 0 < a -> Rpower a (/ 2) = sqrt a.
Proof. apply Rpower_sqrt. Qed.

Lemma r_sin_sum a b : sin (a + b) = sin a * cos b + cos a * sin b.
Proof. apply sin_plus. Qed.

Lemma r_cos_sum a b : cos (a + b) = cos a * cos b - sin a * sin b.
Proof. apply cos_plus. Qed.

Lemma r_sin_opposite a : sin (- a) = - sin a.
Proof. apply sin_neg. Qed.

Lemma r_cos_opposite a : cos (- a) = cos a.
Proof. apply cos_neg. Qed.

Lemma r_pythagoras a : sin a ^ 2 + cos a ^ 2 = 1.
Proof. rewrite sin_square. ring. Qed.

Lemma r_tan a : tan a = sin a / cos a.
Proof. reflexivity. Qed.

Lemma r_sec_square a : cos a <> 0 -> sec a ^ 2 = 1 + tan a ^ 2.
Proof. apply sec_square. Qed.

Lemma r_hyperbolic_pythagoras a : cosh a ^ 2 - sinh a ^ 2 = 1.
Proof. apply cosh_sinh. Qed.

Lemma r_sinh_by_exp a : sinh a = (exp a - / exp a) / 2.
Proof. unfold sinh. now rewrite exp_Ropp. Qed.

Lemma r_cosh_by_exp a : cosh a = (exp a + / exp a) / 2.
Proof. unfold cosh. now rewrite exp_Ropp. Qed.

Lemma r_tanh_by_exp a : tanh a = (exp a ^ 2 - 1) / (exp a ^ 2 + 1).
Proof.
  unfold tanh. rewrite r_sinh_by_exp, r_cosh_by_exp. generalize (exp_pos a). intros P. field. split; nra.
Qed.

Lemma r_sech_square a : sech a ^ 2 = 1 - tanh a ^ 2.
Proof. apply sech_square. Qed.

Lemma r_csch_square a : a <> 0 -> csch a ^ 2 = coth a ^ 2 - 1.
Proof. apply csch_square. Qed.

Lemma r_sigmoid_by_tanh a : sigmoid a = (1 + tanh (a * / 2)) * / 2.
Proof. apply sigmoid_tanh. Qed.

Lemma r_sigmoid_opposite a : sigmoid (- a) = 1 - sigmoid a.
Proof. apply sigmoid_opp. Qed.

Lemma r_softplus_difference a : softplus a - softplus (- a) = a.
Proof.
  unfold softplus. rewrite exp_Ropp. generalize (exp_pos a). intros P.
  replace (1 + / exp a) with ((1 + exp a) / exp a) by (field; lra).
  rewrite r_log_quotient by lra. rewrite ln_exp. ring.
Qed.

Lemma r_erfc a : erf a + erfc a = 1.
Proof. unfold erfc. ring. Qed.

Lemma r_abs_square a : Rabs a ^ 2 = a ^ 2.
Proof. apply pow2_abs. Qed.

Lemma r_abs_by_sign a : Rabs a = sign a * a.
Proof.
  destruct (Rtotal_order a 0) as [H|[->|H]].
  - rewrite Rabs_left, sign_eq_m1 by assumption. ring.
  - rewrite Rabs_R0. ring.
  - rewrite Rabs_pos_eq, sign_eq_1 by lra. ring.
Qed.

(** ** The definitions of the checker's table, in its form *)

Lemma c_tan a : tan a = sin a * / cos a.
Proof. reflexivity. Qed.

Lemma c_cot a : cot a = cos a * / sin a.
Proof. reflexivity. Qed.

Lemma c_sec a : sec a = / cos a.
Proof. reflexivity. Qed.

Lemma c_csc a : csc a = / sin a.
Proof. reflexivity. Qed.

Lemma c_sinh a : sinh a = (exp a - exp (-1 * a)) * / 2.
Proof. unfold sinh. replace (-1 * a) with (- a) by ring. reflexivity. Qed.

Lemma c_cosh a : cosh a = (exp a + exp (-1 * a)) * / 2.
Proof. unfold cosh. replace (-1 * a) with (- a) by ring. reflexivity. Qed.

Lemma c_coth a : a <> 0 -> coth a = / tanh a.
Proof.
  intros H. unfold coth, tanh. generalize (sinh_neq_0 a H) (cosh_pos a). intros P Q. field. repeat split; lra.
Qed.

Lemma c_sech a : sech a = sqrt (1 - tanh a ^ 2).
Proof. rewrite <- sech_square, sqrt_pow2; [reflexivity | apply Rlt_le, sech_pos]. Qed.

Lemma c_csch a : a <> 0 -> csch a = 2 * / (exp a - exp (-1 * a)).
Proof.
  intros H. generalize (sinh_neq_0 a H). unfold csch, sinh. replace (-1 * a) with (- a) by ring.
  intros P. field. intros E. apply P. rewrite E. field.
Qed.

Lemma c_acos a : -1 <= a <= 1 -> acos a = PI * / 2 - asin a.
Proof. intros H. rewrite acos_asin by exact H. reflexivity. Qed.

Lemma c_erfc a : erfc a = 1 - erf a.
Proof. reflexivity. Qed.

Lemma c_acosh a : 1 <= a -> acosh a = ln (a + sqrt (a - 1) * sqrt (a + 1)).
Proof.
  intros H. unfold acosh. rewrite <- sqrt_mult by lra. do 3 f_equal. ring.
Qed.

Lemma c_atanh a : atanh a = ln ((1 + a) * / (1 - a)) * / 2.
Proof. reflexivity. Qed.

Lemma c_log1p a : log1p a = ln (1 + a).
Proof. reflexivity. Qed.

Lemma c_expm1 a : expm1 a = exp a - 1.
Proof. reflexivity. Qed.

Lemma c_exp2 a : exp2 a = exp (a * ln 2).
Proof. reflexivity. Qed.

Lemma c_log2 a : log2 a = ln a * / ln 2.
Proof. reflexivity. Qed.

Lemma c_log10 a : log10 a = ln a * / ln 10.
Proof. reflexivity. Qed.

Lemma c_hypot a b : hypot a b = sqrt (a ^ 2 + b ^ 2).
Proof. reflexivity. Qed.

Lemma c_silu a : silu a = a * sigmoid a.
Proof. reflexivity. Qed.

Lemma c_logaddexp a b : logaddexp a b = ln (exp a + exp b).
Proof. reflexivity. Qed.

Lemma c_tanh a : tanh a = 1 - 2 * / (exp (2 * a) + 1).
Proof.
  rewrite r_tanh_by_exp. replace (2 * a) with (a + a) by ring. rewrite exp_plus.
  generalize (exp_pos a). intros P. field. repeat split; nra.
Qed.

Lemma c_asinh a : arcsinh a = ln (a + sqrt (a ^ 2 + 1)).
Proof. reflexivity. Qed.

Lemma c_logcosh a : logcosh a = ln ((exp a + exp (-1 * a)) * / 2).
Proof. unfold logcosh. rewrite c_cosh. reflexivity. Qed.

Lemma c_sigmoid a : sigmoid a = / (1 + exp (-1 * a)).
Proof. unfold sigmoid. replace (-1 * a) with (- a) by ring. reflexivity. Qed.

Lemma c_softplus a : softplus a = ln (1 + exp a).
Proof. reflexivity. Qed.

Lemma c_max a b : Rmax a b = (a + b + Rabs (a - b)) * / 2.
Proof. unfold Rmax, Rabs. destruct (Rle_dec a b); destruct (Rcase_abs (a - b)); lra. Qed.

Lemma c_min a b : Rmin a b = (a + b - Rabs (a - b)) * / 2.
Proof. unfold Rmin, Rabs. destruct (Rle_dec a b); destruct (Rcase_abs (a - b)); lra. Qed.

Definition select (c a b : R) : R := if Req_EM_T c 0 then b else a.

Lemma c_less a b : b - a <> 0 -> less a b = (1 + sign (b - a)) * / 2.
Proof.
  intros H. unfold less. destruct (Rlt_dec a b) as [L | L]; [rewrite sign_eq_1 | rewrite sign_eq_m1]; lra.
Qed.

Lemma c_equal a b : b - a <> 0 -> equal a b = 0.
Proof. intros H. unfold equal. destruct (Req_EM_T a b); lra. Qed.

Lemma c_sign a : a <> 0 -> sign a = Rabs a * / a.
Proof. intros H. rewrite r_abs_by_sign. field. exact H. Qed.

Lemma c_heaviside a : heaviside a = less 0 a + / 2 * equal a 0.
Proof.
  unfold heaviside, less, equal. destruct (Rlt_dec 0 a), (Req_EM_T a 0); try lra;
    [rewrite sign_eq_1 | subst a; rewrite sign_0 | rewrite sign_eq_m1]; lra.
Qed.

Lemma c_pow a b : 0 < a -> Rpower a b = exp (b * ln a).
Proof. reflexivity. Qed.

Lemma c_select c a b : c * c = c -> select c a b = b + c * (a - b).
Proof.
  intros H. unfold select. destruct (Req_EM_T c 0) as [E | E]; [rewrite E; ring|].
  assert (F : c = 1) by (apply (Rmult_eq_reg_l c); lra). rewrite F. ring.
Qed.

(** ** What is known of signs and parities *)

Lemma c_abs_product a b : Rabs (a * b) = Rabs a * Rabs b.
Proof. apply Rabs_mult. Qed.

Lemma c_indicator a b : less a b ^ 2 = less a b.
Proof. unfold less. destruct (Rlt_dec a b); ring. Qed.

Lemma r_less_turned a b : a - b <> 0 -> less a b = 1 - less b a.
Proof. intros H. unfold less. destruct (Rlt_dec a b), (Rlt_dec b a); lra. Qed.

Lemma r_equal_max a b : equal a (Rmax a b) = 1 - less a b.
Proof.
  unfold equal, less, Rmax. destruct (Rle_dec a b) as [L | L], (Rlt_dec a b) as [M | M];
    try apply Rnot_le_lt in L; try apply Rnot_lt_le in M; destruct (Req_EM_T a _); lra.
Qed.

Lemma r_equal_min a b : equal a (Rmin a b) = 1 - less b a.
Proof.
  unfold equal, less, Rmin. destruct (Rle_dec a b) as [L | L], (Rlt_dec b a) as [M | M];
    try apply Rnot_le_lt in L; try apply Rnot_lt_le in M; destruct (Req_EM_T a _); lra.
Qed.

(** An argument a of the extreme u of some numbers; the extreme of u and one more number. *)

Lemma r_equal_max_of_max a b u : a <= u -> equal a (Rmax u b) = equal a u * (1 - less u b).
Proof.
  intros H. unfold equal, less, Rmax.
  destruct (Rle_dec u b) as [L | L], (Rlt_dec u b) as [M | M];
    try apply Rnot_le_lt in L; try apply Rnot_lt_le in M;
    repeat match goal with |- context [Req_EM_T ?x ?y] => destruct (Req_EM_T x y) end; lra.
Qed.

Lemma r_equal_min_of_min a b u : u <= a -> equal a (Rmin u b) = equal a u * (1 - less b u).
Proof.
  intros H. unfold equal, less, Rmin.
  destruct (Rle_dec u b) as [L | L], (Rlt_dec b u) as [M | M];
    try apply Rnot_le_lt in L; try apply Rnot_lt_le in M;
    repeat match goal with |- context [Req_EM_T ?x ?y] => destruct (Req_EM_T x y) end; lra.
Qed.

Lemma c_tanh_odd a : tanh (-1 * a) = -1 * tanh a.
Proof.
  rewrite !c_tanh. replace (2 * (-1 * a)) with (- (2 * a)) by ring. rewrite exp_Ropp.
  generalize (exp_pos (2 * a)). intros P. field. repeat split; nra.
Qed.

Lemma c_logcosh_even a : logcosh (-1 * a) = logcosh a.
Proof.
  rewrite !c_logcosh. replace (-1 * (-1 * a)) with a by ring. now rewrite (Rplus_comm (exp (-1 * a))).
Qed.

Lemma c_positive a : 0 < PI /\ 0 < exp a /\ 0 < sigmoid a /\ 0 < softplus a.
Proof. repeat split; [apply PI_RGT_0 | apply exp_pos | apply sigmoid_pos | apply softplus_pos]. Qed.

Lemma c_sqrt a : 0 < a -> sqrt a = Rpower a (/ 2).
Proof. intros H. symmetry. now apply Rpower_sqrt. Qed.
